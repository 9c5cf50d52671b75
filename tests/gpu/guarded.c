/* guarded.c - see guarded.h: twice as many addresses as memory, of which the second half is never mapped. */
#include "guarded.h"

#include <cuda.h>
#include <cudaTypedefs.h>

#include "gpu.h"

static void find(const char *name, unsigned version, void **function) {
  enum cudaDriverEntryPointQueryResult found;
  GPU(cudaGetDriverEntryPointByVersion(name, function, version, cudaEnableDefault, &found));
  REQUIRE(found == cudaDriverEntryPointSuccess && *function, "%s", name);
}

char *gpu_guarded_end(size_t bytes) {
  PFN_cuMemGetAllocationGranularity_v10020 granularity_of;
  PFN_cuMemAddressReserve_v10020 reserve;
  PFN_cuMemCreate_v10020 create;
  PFN_cuMemMap_v10020 map;
  PFN_cuMemSetAccess_v10020 set_access;
  find("cuMemGetAllocationGranularity", 10020, (void **)&granularity_of);
  find("cuMemAddressReserve", 10020, (void **)&reserve);
  find("cuMemCreate", 10020, (void **)&create);
  find("cuMemMap", 10020, (void **)&map);
  find("cuMemSetAccess", 10020, (void **)&set_access);
  const CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
  const CUmemAccessDesc access = {.location = what.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle memory;
  CUdeviceptr begin;
  size_t granularity = 1;
  REQUIRE(granularity_of(&granularity, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS, "granularity");
  const size_t mapped = (bytes + granularity - 1) / granularity * granularity;
  REQUIRE(reserve(&begin, 2 * mapped, 0, 0, 0) == CUDA_SUCCESS && create(&memory, mapped, &what, 0) == CUDA_SUCCESS &&
              map(begin, mapped, 0, memory, 0) == CUDA_SUCCESS && set_access(begin, mapped, &access, 1) == CUDA_SUCCESS,
          "%zu bytes", mapped);
  GPU(cudaMemset((void *)begin, 0, mapped));
  return (char *)begin + mapped;
}
