#!/bin/sh
# ScaLAPACK's pdgemm, pdpotrf and pdgetrf with 4 processes of Open MPI, on libwsgemm_blas by preload: residuals, and the calls that the
# library took.
#   scalapack.sh LIBRARY SCRATCH_DIR [N [BLOCK]]
set -eu
library=$1 scratch=$2 n=${3:-200} block=${4:-32}
here=$(cd "$(dirname "$0")" && pwd)
lib=/usr/lib/$(cc -print-multiarch 2>/dev/null || gcc -print-multiarch)
for file in "$(command -v mpirun || echo /usr/bin/mpirun)" "$lib/libscalapack-openmpi.so.2.2"; do
  [ -e "$file" ] || {
    echo "skipped: no $file (sh tools/scalapack.sh installs it)"
    exit 77
  }
done
mkdir -p "$scratch"
cc -O2 -std=c11 -D_POSIX_C_SOURCE=200809L "$here/scalapack_check.c" -o "$scratch/scalapack_check" "$lib/libscalapack-openmpi.so.2.2" -lm

# Four processes on whatever this machine has, each with one thread; LAPACK: the reference one, whose Level 3 is libblas.so.3's.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_plm=isolated
rc=0
mpirun -n 4 env OMP_NUM_THREADS=1 WSGEMM_BLAS_LOG=1 LD_LIBRARY_PATH="$lib/lapack" LD_PRELOAD="$library" \
  "$scratch/scalapack_check" "$n" "$block" >"$scratch/log" 2>&1 || rc=$?
grep -v '^wsgemm_blas\[' "$scratch/log" || true
awk '/^wsgemm_blas\[/ { calls[$2] += $3; products[$2] += $5; n++ }
  END { for (name in calls) printf "calls taken: %s %d, %.3g multiply-adds\n", name, calls[name], products[name] }' "$scratch/log" | sort
[ "$rc" -eq 0 ] || {
  echo "scalapack.sh: exit status $rc"
  exit 1
}
[ "$(grep -c ' good$' "$scratch/log")" -eq 3 ] || {
  echo "scalapack.sh: not three good residuals"
  exit 1
}
for routine in dgemm dtrsm dsyrk; do
  grep -q "^wsgemm_blas.*: $routine:" "$scratch/log" || {
    echo "scalapack.sh: $routine was not taken"
    exit 1
  }
done
