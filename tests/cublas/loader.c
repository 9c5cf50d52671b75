/* loader.c - a program that links no cuBLAS and loads plug-ins that do, each into a scope of its own, as
 * Python does with extensions: loader PLUGIN... */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  for (int turn = 0; turn < 2; turn++)
    for (int i = 1; i < argc; i++) {
      void *const plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
      int (*run)(void) = NULL;
      if (plugin) *(void **)&run = dlsym(plugin, "run_products");
      if (!run) return printf("%s\n", dlerror()), 1;
      printf("plug-in %d: products of its own cuBLAS: %d\n", i, run());
    }
  return 0;
}
