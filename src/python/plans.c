/* plans.c - a table of plans by open addressing, and their making from Python's. */
#include <stdlib.h>
#include <string.h>

#include "plans.h"

typedef struct ws_slot {
  uint64_t hash;
  ws_plan *plan; /* NULL: free */
  int n_words;
  uint64_t *words;
} ws_slot;

/* ---- The table ---------------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const ws_key *key) {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (int i = 0; i < key->n_words; i++) {
    hash = (hash ^ key->words[i]) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

/* Where the key is, or would be put; there is always a free slot. */
static ws_slot *slot_of(const ws_plans *plans, const ws_key *key, uint64_t hash) {
  for (size_t i = hash;; i++) {
    ws_slot *slot = &plans->slots[i & (plans->n_slots - 1)];
    if (!slot->plan) return slot;
    if (slot->hash == hash && slot->n_words == key->n_words &&
        !memcmp(slot->words, key->words, (size_t)key->n_words * sizeof *key->words))
      return slot;
  }
}

ws_plan *ws_plans_find(ws_plans *plans, const ws_key *key) {
  if (!plans->slots) return NULL;
  ws_plan *plan = slot_of(plans, key, hash_of(key))->plan;
  if (plan) plan->n_users++;
  return plan;
}

void ws_plans_clear(ws_plans *plans) {
  /* Releasing one may run others' code, which may look here. */
  ws_slot *slots = plans->slots;
  const size_t n_slots = plans->n_slots;
  plans->slots = NULL, plans->n_slots = plans->n_plans = 0;
  for (size_t i = 0; i < n_slots; i++) {
    if (!slots[i].plan) continue;
    free(slots[i].words);
    ws_plan_release(slots[i].plan);
  }
  free(slots);
}

bool ws_plans_keep(ws_plans *plans, const ws_key *key, ws_plan *plan) {
  if (plans->n_plans >= plans->most) ws_plans_clear(plans);
  if (!plans->slots) {
    size_t n_slots = 16;
    while (n_slots < 2 * plans->most) n_slots *= 2;
    plans->slots = calloc(n_slots, sizeof *plans->slots);
    if (!plans->slots) return PyErr_NoMemory(), false;
    plans->n_slots = n_slots;
  }
  const size_t bytes = (size_t)key->n_words * sizeof *key->words;
  uint64_t *words = malloc(bytes);
  if (!words) return PyErr_NoMemory(), false;
  const uint64_t hash = hash_of(key);
  ws_slot *slot = slot_of(plans, key, hash);
  if (slot->plan) return free(words), true; /* another thread was quicker */
  memcpy(words, key->words, bytes);
  *slot = (ws_slot){.hash = hash, .plan = plan, .n_words = key->n_words, .words = words};
  plan->n_users++, plans->n_plans++;
  return true;
}

/* ---- Plans -------------------------------------------------------------------------------------------------------------- */

/* False: an exception. */
static bool read_number(PyObject *made, const char *name, int64_t *number) {
  PyObject *value = PyObject_GetAttrString(made, name);
  if (!value) return false;
  *number = PyLong_AsLongLong(value);
  Py_DECREF(value);
  return !PyErr_Occurred();
}

static bool read_numbers(ws_plan *plan, PyObject *made) {
  const struct {
    const char *name;
    int64_t *number;
  } members[] = {{"device", &plan->device},   {"misaligned", &plan->misaligned}, {"lda", &plan->lda},
                 {"ldb", &plan->ldb},         {"bytes_a", &plan->bytes[0]},      {"bytes_b", &plan->bytes[1]},
                 {"bytes_c", &plan->bytes[2]}};
  for (size_t i = 0; i < sizeof members / sizeof *members; i++)
    if (!read_number(made, members[i].name, members[i].number)) return false;
  return true;
}

/* Puts bytes behind those that are there. False: an exception. */
static bool append(ws_plan *plan, PyObject *made, const char *name) {
  PyObject *part = PyObject_GetAttrString(made, name);
  char *data;
  Py_ssize_t n_bytes;
  if (!part || PyBytes_AsStringAndSize(part, &data, &n_bytes)) return Py_XDECREF(part), false;
  const bool fits = plan->desc_bytes + n_bytes + 64 <= WS_MOST_DESC_BYTES; /* the places of A, B, C and the bias come to it */
  if (fits) memcpy(plan->desc + plan->desc_bytes, data, (size_t)n_bytes), plan->desc_bytes += (int)n_bytes;
  Py_DECREF(part);
  if (!fits) PyErr_SetString(PyExc_ValueError, "a descriptor is longer than any");
  return fits;
}

/* The descriptor: head, places, tail, and if there is a bias its place and the rest. */
static bool read_desc(ws_plan *plan, PyObject *made) {
  if (!append(plan, made, "head")) return false;
  plan->at_places = plan->desc_bytes;
  plan->desc_bytes += 5 * (int)sizeof(int64_t);
  if (!append(plan, made, "tail")) return false;
  plan->at_bias = -1;
  PyObject *rest = PyObject_GetAttrString(made, "rest");
  if (!rest) return false;
  const bool has_bias = rest != Py_None;
  Py_DECREF(rest);
  if (!has_bias) return true;
  plan->at_bias = plan->desc_bytes;
  plan->desc_bytes += (int)sizeof(int64_t);
  return append(plan, made, "rest");
}

ws_plan *ws_plan_of(PyObject *made, PyObject *kept) {
  ws_plan *plan = calloc(1, sizeof *plan);
  if (!plan) return (ws_plan *)PyErr_NoMemory();
  plan->n_users = 1;
  plan->is_possible = made != Py_None;
  Py_XINCREF(kept);
  plan->kept = kept;
  if (!plan->is_possible) return plan;
  if (read_numbers(plan, made) && (plan->arguments = PyObject_GetAttrString(made, "arguments")) &&
      (plan->keywords = PyObject_GetAttrString(made, "keywords")) && read_desc(plan, made))
    return plan;
  ws_plan_release(plan);
  return NULL;
}

void ws_plan_release(ws_plan *plan) {
  if (--plan->n_users) return;
  Py_XDECREF(plan->arguments);
  Py_XDECREF(plan->keywords);
  Py_XDECREF(plan->kept);
  free(plan);
}
