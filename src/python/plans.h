/* plans.h - the plans of products that are made again and again, kept by what they were made of.
 *
 * A key is a row of words: scalars, shapes, strides, types, devices. A plan is what Python's planned() (python/wsgemm/_plans.py)
 * has made of such arrays: the descriptor without addresses, and what must hold of these. All is used under the GIL. */
#ifndef WS_PYTHON_PLANS_H
#define WS_PYTHON_PLANS_H
#include "arrays.h"

enum { WS_MOST_ARRAYS = 4, WS_MOST_WORDS = 6 + WS_MOST_ARRAYS * (2 + 2 * WS_MOST_DIMS), WS_MOST_DESC_BYTES = 512 };

typedef struct ws_key {
  int n_words;
  uint64_t words[WS_MOST_WORDS];
} ws_key;

typedef struct ws_plan {
  int n_users;
  bool is_possible;                   /* false: there is no short way for these */
  int64_t device, misaligned;         /* bits that no address may have */
  int64_t bytes[3];                   /* of A, B and C, from the first element to behind the last */
  PyObject *arguments, *keywords;     /* for a new result: a tuple and a dict */
  PyObject *kept;                     /* what words of the key are the addresses of */
  int desc_bytes, at_places, at_bias; /* at_bias -1: there is none */
  int64_t lda, ldb;
  char desc[WS_MOST_DESC_BYTES];
} ws_plan;

typedef struct ws_plans {
  struct ws_slot *slots;
  size_t n_slots, n_plans, most;
} ws_plans;

/* The plan of this key, with one user more; NULL: it is not known. */
ws_plan *ws_plans_find(ws_plans *plans, const ws_key *key);

/* Keeps the plan, in place of all others if there are many, and with one user more. False: an exception. */
bool ws_plans_keep(ws_plans *plans, const ws_key *key, ws_plan *plan);

void ws_plans_clear(ws_plans *plans);

/* From what planned() has returned, with one user; NULL: an exception. */
ws_plan *ws_plan_of(PyObject *made, PyObject *kept);

void ws_plan_release(ws_plan *plan);
#endif
