/* layer.c - a library that asks dlsym for others (asker.c), and defines a name that they define, too. LAYER is
 * which of them it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

void layer(void);
void *JOIN(ask_, LAYER)(void *library, const char *name);
void layer(void) {}

/* The call must not be the function's last step: dlsym is to see its return address here. */
void *JOIN(ask_, LAYER)(void *library, const char *name) {
  void *volatile found = dlsym(library, name);
  return found;
}

/* One has a start before the program's, the other a cuBLAS of its own, by its names but in no file of cuBLAS. */
#ifdef IS_EARLY
extern void *found_early;
void *found_early;
__attribute__((constructor)) static void ask_early(void) {
  const char *const library = getenv("ASK_EARLY");
  void *const opened = library ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (opened) found_early = dlsym(opened, "cublasSgemm_v2");
}
#else
int cublasCreate_v2(void **handle), cublasSetStream_v2(void *handle, void *stream);
int cublasCreate_v2(void **handle) { return (void)handle, 1; }
int cublasSetStream_v2(void *handle, void *stream) { return (void)handle, (void)stream, 1; }
#endif
