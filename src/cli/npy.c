/* The .npy format in memory: parses headers, decodes whole files, makes headers. Files are
 * npy_file.c's business.
 *
 * A header is Python: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. Just that is
 * understood: the three keys, each once, in any order. Invariant: no byte beyond the given ones is
 * read, and no size computed here has overflowed. */
#include "npy.h"
#include "types.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ws_npy_refuse(char why[WS_NPY_WHY_BYTES], const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why, WS_NPY_WHY_BYTES, format, args);
  va_end(args);
  return false;
}

static bool machine_is_little(void) {
  const uint16_t one = 1;
  unsigned char first;
  memcpy(&first, &one, 1);
  return first == 1;
}

/* ---- The header's text ----------------------------------------------------------------------- */

typedef struct {
  const char *p, *end;
} cursor;

enum { MAX_DIMS = 32 };

typedef struct {
  const char *descr; /* not closed by NUL */
  size_t descr_length;
  bool is_fortran;
  int n_dims;
  int64_t dims[MAX_DIMS];
} header_fields;

static void skip_blanks(cursor *at) {
  while (at->p < at->end && (*at->p == ' ' || *at->p == '\n' || *at->p == '\t' || *at->p == '\r')) at->p++;
}

static bool take(cursor *at, char wanted) {
  skip_blanks(at);
  if (at->p == at->end || *at->p != wanted) return false;
  at->p++;
  return true;
}

static bool take_word(cursor *at, const char *word) {
  skip_blanks(at);
  size_t length = strlen(word);
  if ((size_t)(at->end - at->p) < length || memcmp(at->p, word, length) != 0) return false;
  at->p += length;
  return true;
}

static bool take_string(cursor *at, const char **text, size_t *length) {
  skip_blanks(at);
  if (at->p == at->end || (*at->p != '\'' && *at->p != '"')) return false;
  char quote = *at->p++;
  *text = at->p;
  while (at->p < at->end && *at->p != quote && *at->p != '\\' && *at->p != '\n') at->p++;
  *length = (size_t)(at->p - *text);
  return at->p < at->end && *at->p++ == quote;
}

/* A size, with the L that Python 2 put behind long ones. A number beyond int64_t becomes INT64_MAX:
 * no file is that large. */
static bool take_size(cursor *at, int64_t *out) {
  skip_blanks(at);
  const char *first = at->p;
  *out = 0;
  for (; at->p < at->end && *at->p >= '0' && *at->p <= '9'; at->p++) {
    int digit = *at->p - '0';
    *out = *out > (INT64_MAX - digit) / 10 ? INT64_MAX : *out * 10 + digit;
  }
  if (at->p == first) return false;
  if (at->p < at->end && *at->p == 'L') at->p++;
  return true;
}

static bool take_shape(cursor *at, header_fields *fields) {
  if (!take(at, '(')) return false;
  while (!take(at, ')')) {
    if (fields->n_dims == MAX_DIMS || !take_size(at, &fields->dims[fields->n_dims])) return false;
    fields->n_dims++;
    /* (3) is a number, (3,) a tuple */
    if (!take(at, ',')) return fields->n_dims > 1 && take(at, ')');
  }
  return true;
}

static bool take_fields(cursor at, header_fields *fields, char why[WS_NPY_WHY_BYTES]) {
  bool has_descr = false, has_order = false, has_shape = false;
  *fields = (header_fields){0};
  if (!take(&at, '{')) return ws_npy_refuse(why, "damaged header: it is no Python dictionary");
  while (!take(&at, '}')) {
    const char *key;
    size_t length;
    if (!take_string(&at, &key, &length) || !take(&at, ':')) return ws_npy_refuse(why, "damaged header: a key is expected");
    if (length == 5 && memcmp(key, "descr", 5) == 0 && !has_descr) {
      has_descr = true;
      skip_blanks(&at);
      if (at.p < at.end && (*at.p == '[' || *at.p == '(')) return ws_npy_refuse(why, "holds records, not numbers");
      if (!take_string(&at, &fields->descr, &fields->descr_length)) return ws_npy_refuse(why, "damaged header: descr is no text");
    } else if (length == 13 && memcmp(key, "fortran_order", 13) == 0 && !has_order) {
      has_order = true;
      fields->is_fortran = take_word(&at, "True");
      if (!fields->is_fortran && !take_word(&at, "False"))
        return ws_npy_refuse(why, "damaged header: fortran_order is neither True nor False");
    } else if (length == 5 && memcmp(key, "shape", 5) == 0 && !has_shape) {
      has_shape = true;
      if (!take_shape(&at, fields)) return ws_npy_refuse(why, "damaged header: shape is no tuple of sizes");
    } else {
      return ws_npy_refuse(why, "damaged header: unexpected or repeated key '%.*s'", (int)(length < 40 ? length : 40), key);
    }
    if (!take(&at, ',')) {
      if (take(&at, '}')) break;
      return ws_npy_refuse(why, "damaged header: a comma is missing");
    }
  }
  skip_blanks(&at);
  if (at.p != at.end) return ws_npy_refuse(why, "damaged header: there is more behind its closing brace");
  if (!has_descr || !has_order || !has_shape)
    return ws_npy_refuse(why, "damaged header: %s is missing", !has_descr ? "descr" : !has_order ? "fortran_order" : "shape");
  return true;
}

/* ---- What the fields mean -------------------------------------------------------------------- */

static bool type_of(const char *descr, size_t length, ws_npy_info *info) {
  bool is_little = machine_is_little();
  info->is_swapped = false;
  if (length > 0 && (*descr == '<' || *descr == '>' || *descr == '=')) {
    info->is_swapped = *descr != '=' && (*descr == '<') != is_little;
    descr++;
    length--;
  }
  for (int i = 0; i < WS_N_TYPES; i++) {
    if (i == WSGEMM_BF16 || length != strlen(ws_cli_types[i].name) || memcmp(descr, ws_cli_types[i].name, length) != 0) continue;
    info->type = (wsgemm_type)i;
    return true;
  }
  return false;
}

static bool check_size(int64_t file_bytes, ws_npy_info *info, char why[WS_NPY_WHY_BYTES]) {
  int64_t element_bytes = ws_cli_types[info->type].bytes, held_bytes = file_bytes - info->data_offset;
  int64_t rows = info->n_rows, cols = info->n_cols;
  if (rows > 0 && cols > 0 && rows > INT64_MAX / element_bytes / cols)
    return ws_npy_refuse(
        why, "truncated: the header promises %" PRId64 " x %" PRId64 " elements, the file holds %" PRId64 " bytes of data", rows,
        cols, held_bytes);
  info->data_bytes = rows * cols * element_bytes;
  if (held_bytes < info->data_bytes)
    return ws_npy_refuse(why, "truncated: the header promises %" PRId64 " bytes of data, the file holds %" PRId64,
                         info->data_bytes, held_bytes);
  if (held_bytes > info->data_bytes)
    return ws_npy_refuse(why, "%" PRId64 " bytes of junk follow the %" PRId64 " bytes of data", held_bytes - info->data_bytes,
                         info->data_bytes);
  return true;
}

bool ws_npy_parse(const unsigned char *start, size_t n_start, int64_t file_bytes, ws_npy_info *info, char why[WS_NPY_WHY_BYTES]) {
  static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  *info = (ws_npy_info){0};
  if (n_start == 0) return ws_npy_refuse(why, "is empty");
  if (memcmp(start, magic, n_start < sizeof magic ? n_start : sizeof magic) != 0) return ws_npy_refuse(why, "is no .npy file");
  if (n_start < 10) return ws_npy_refuse(why, "truncated within the header");
  int version = start[6];
  if (version < 1 || version > 3 || start[7] != 0)
    return ws_npy_refuse(why, "unknown .npy version %d.%d (known: 1.0, 2.0, 3.0)", start[6], start[7]);

  size_t prefix_bytes = version == 1 ? 10 : 12;
  if (n_start < prefix_bytes) return ws_npy_refuse(why, "truncated within the header");
  uint32_t header_bytes = start[8] | (uint32_t)start[9] << 8;
  if (version > 1) header_bytes |= (uint32_t)start[10] << 16 | (uint32_t)start[11] << 24;
  if (header_bytes > file_bytes - (int64_t)prefix_bytes) return ws_npy_refuse(why, "truncated within the header");
  if (header_bytes > n_start - prefix_bytes)
    return ws_npy_refuse(why, "its header of %" PRIu32 " bytes is absurdly long", header_bytes);

  const char *text = (const char *)start + prefix_bytes;
  header_fields fields;
  if (!take_fields((cursor){text, text + header_bytes}, &fields, why)) return false;
  if (!type_of(fields.descr, fields.descr_length, info))
    return ws_npy_refuse(why, "element type '%.*s' is none of f2, f4, f8, c8, c16",
                         (int)(fields.descr_length < 20 ? fields.descr_length : 20), fields.descr);
  if (fields.n_dims != 2) return ws_npy_refuse(why, "holds a %d-D array; a matrix (2-D) is needed", fields.n_dims);
  info->n_rows = fields.dims[0];
  info->n_cols = fields.dims[1];
  info->is_fortran = fields.is_fortran;
  info->data_offset = (int64_t)prefix_bytes + header_bytes;
  return check_size(file_bytes, info, why);
}

/* ---- Data ------------------------------------------------------------------------------------ */

int64_t ws_npy_data_bytes(wsgemm_type type, int64_t n_rows, int64_t n_cols) {
  int64_t element_bytes = ws_cli_types[type].bytes, most = (int64_t)(SIZE_MAX / 2 < INT64_MAX ? SIZE_MAX / 2 : INT64_MAX) - 64;
  if (n_rows > 0 && n_cols > most / element_bytes / n_rows) return -1;
  return n_rows * n_cols * element_bytes;
}

void *ws_npy_alloc(wsgemm_type type, int64_t n_rows, int64_t n_cols) {
  const int64_t n_bytes = ws_npy_data_bytes(type, n_rows, n_cols);
  if (n_bytes < 0) return NULL;
  return aligned_alloc(64, n_bytes ? ((size_t)n_bytes + 63) / 64 * 64 : 64);
}

void ws_npy_swap(wsgemm_type type, void *data, int64_t n_bytes) {
  size_t size = (size_t)ws_cli_types[type].part_bytes;
  unsigned char *end = (unsigned char *)data + n_bytes;
  for (unsigned char *number = data; number < end; number += size) {
    for (size_t i = 0; i < size / 2; i++) {
      unsigned char byte = number[i];
      number[i] = number[size - 1 - i];
      number[size - 1 - i] = byte;
    }
  }
}

bool ws_npy_decode(const unsigned char *file, size_t n_bytes, ws_npy *out, char why[WS_NPY_WHY_BYTES]) {
  ws_npy_info info;
  size_t n_start = n_bytes < WS_NPY_HEADER_MAX_BYTES ? n_bytes : WS_NPY_HEADER_MAX_BYTES;
  if (!ws_npy_parse(file, n_start, (int64_t)n_bytes, &info, why)) return false;
  void *data = ws_npy_alloc(info.type, info.n_rows, info.n_cols);
  if (!data) return ws_npy_refuse(why, "out of memory for %" PRId64 " bytes of data", info.data_bytes);
  memcpy(data, file + info.data_offset, (size_t)info.data_bytes);
  if (info.is_swapped) ws_npy_swap(info.type, data, info.data_bytes);
  *out = (ws_npy){info.type, info.n_rows, info.n_cols, info.is_fortran, data, NULL, 0};
  return true;
}

size_t ws_npy_header(const ws_npy *m, char header[WS_NPY_HEADER_BYTES]) {
  enum { PREFIX_BYTES = 10 };
  char *text = header + PREFIX_BYTES;
  int length = snprintf(
      text, WS_NPY_HEADER_BYTES - PREFIX_BYTES, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (%" PRId64 ", %" PRId64 "), }",
      machine_is_little() ? '<' : '>', ws_cli_types[m->type].name, m->is_fortran ? "True" : "False", m->n_rows, m->n_cols);
  size_t total = (PREFIX_BYTES + (size_t)length + 1 + 63) / 64 * 64, header_bytes = total - PREFIX_BYTES;
  memset(text + length, ' ', header_bytes - (size_t)length);
  text[header_bytes - 1] = '\n';
  memcpy(header, "\x93NUMPY\x01\x00", 8);
  header[8] = (char)(header_bytes & 0xff);
  header[9] = (char)(header_bytes >> 8);
  return total;
}
