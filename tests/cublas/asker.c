/* asker.c - a program that knows nothing of wsgemm and links no cuBLAS: it opens libraries of it and asks dlsym
 * for their functions, as jax does. process.sh runs it under libwsgemm_cublas and without.
 *
 *   asker LIBRARY...    whose each answer is (file and error), then products of each library, handles of all
 *                       of them alive at once */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cublas.h"

extern void *found_early;
void layer(void);
void *ask_one(void *library, const char *name), *ask_two(void *library, const char *name);
static void *ask_here(void *library, const char *name) {
  void *volatile found = dlsym(library, name);
  return found;
}
void layer(void) {}

/* A name of cuBLAS that the program has for itself. */
WS_CUBLAS_EXPORT cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return (void)handle, (void)stream, CUBLAS_STATUS_NOT_SUPPORTED;
}

static const char *file_of(void *address) {
  Dl_info info;
  if (!address) return "none";
  if (!dladdr(address, &info)) return "unknown";
  return strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
}

static void print_answer(const char *who, void *(*ask)(void *, const char *), const char *what, void *library, const char *name) {
  dlerror();
  void *const found = ask(library, name);
  const char *const error = dlerror();
  printf("%s, %s %s: %s, %s\n", who, what, name, file_of(found), error ? error : "no error");
}

static void print_answers(void *library, const char *path) {
  static const char *const names[] = {"layer", "malloc", "no_such_name", "cublas_no_such_name"};
  for (int i = 0; i < 4; i++) {
    print_answer("program", ask_here, "next", RTLD_NEXT, names[i]);
    print_answer("one", ask_one, "next", RTLD_NEXT, names[i]);
    print_answer("two", ask_two, "next", RTLD_NEXT, names[i]);
    print_answer("program", ask_here, "default", RTLD_DEFAULT, names[i]);
    print_answer("two", ask_two, "default", RTLD_DEFAULT, names[i]);
  }
  static const char *const of_library[] = {"no_such_name",      "cublas_no_such_name", "fake_cublas",
                                           "cublasGetMathMode", "cublasSgemm_v2",      "cublasSetStream_v2"};
  for (int i = 0; i < 6; i++) print_answer("program", ask_here, "library's", library, of_library[i]);
  print_answer("program", ask_here, "own", dlopen(NULL, RTLD_NOW), "cublasSetStream_v2");
  print_answer("program", ask_here, "layer's", dlopen("liblayer_two.so", RTLD_NOW), "cublasSetStream_v2");
  print_answer("program", ask_here, "namespace's", dlmopen(LM_ID_NEWLM, path, RTLD_NOW), "cublasSgemm_v2");
  printf("early: %s\n", file_of(found_early));
}

typedef struct cublas {
  __typeof__(&cublasCreate_v2) create;
  __typeof__(&cublasSgemm_v2) sgemm;
  __typeof__(&cublasDestroy_v2) destroy;
  fake_cublas_library *asked;
  char *handles;
  cublasHandle_t handle;
} cublas;

static void find(void *library, const char *name, void *function) {
  void *const found = dlsym(library, name);
  if (!found || dlerror()) printf("no %s\n", name), exit(1);
  memcpy(function, &found, sizeof found);
}

static bool is_own(const cublas *c) {
  return (char *)c->handle >= c->handles && (char *)c->handle < c->handles + sizeof fake_cublas_handles;
}

int main(int argc, char **argv) {
  enum { N_MOST = 3 };
  static float matrix[4];
  const float one = 1;
  const int n = argc - 1 < N_MOST ? argc - 1 : N_MOST;
  cublas all[N_MOST];
  void *library[N_MOST];
  print_answer("program", ask_here, "namespace's", dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW), "cublasSgemm_v2");
  for (int i = 0; i < n; i++) {
    if (!(library[i] = dlopen(argv[1 + i], RTLD_NOW | RTLD_LOCAL))) return printf("%s\n", dlerror()), 1;
    find(library[i], "cublasCreate_v2", &all[i].create);
    find(library[i], "cublasSgemm_v2", &all[i].sgemm);
    find(library[i], "cublasDestroy_v2", &all[i].destroy);
    find(library[i], "fake_cublas", &all[i].asked);
    find(library[i], "fake_cublas_handles", &all[i].handles);
  }
  print_answers(library[0], argv[1]);
  for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < n; i++)
      if (all[i].create(&all[i].handle) != CUBLAS_STATUS_SUCCESS || !is_own(&all[i]))
        printf("library %d: a handle of another\n", 1 + i);
    for (int i = n - 1; i >= 0; i--)
      for (int size = 1; size <= 4096; size *= 4096)
        all[i].sgemm(all[i].handle, CUBLAS_OP_N, CUBLAS_OP_N, size, size, size, &one, matrix, size, matrix, size, &one, matrix,
                     size);
    for (int i = 0; i < n; i++) all[i].destroy(all[i].handle);
  }
  for (int i = 0; i < n; i++) {
    const int *const calls = all[i].asked->n_calls_of;
    printf("library %d: %d handles, %d products, %d handles ended\n", 1 + i, calls[WS_cublasCreate_v2], calls[WS_cublasSgemm_v2],
           calls[WS_cublasDestroy_v2]);
    dlclose(library[i]);
  }
  return 0;
}
