#!/bin/sh
# Installs ScaLAPACK and Open MPI from Debian, builds libwsgemm_blas if need be, and runs pdgemm, pdpotrf and pdgetrf with 4 processes
# on it by preload: residuals, rates, calls taken. docs/distributed.md says how to do it on a cluster.
#   scalapack.sh [N [BLOCK]]    default: 2000, blocks of 64
set -eu
cd "$(dirname "$0")/.."
packages="openmpi-bin libscalapack-openmpi2.2 liblapack3 libblas3"
missing=
for package in $packages; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
  echo "scalapack: installing$missing"
  as_root=
  if [ "$(id -u)" -ne 0 ]; then as_root=sudo; fi
  $as_root apt-get update -q
  # shellcheck disable=SC2086 # a list of package names
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
fi
library=$PWD/build/release/libwsgemm_blas.so
if [ ! -e "$library" ]; then
  sh tools/setup.sh demo
  cmake --preset release -DWSGEMM_BUILD_TESTS=OFF
  cmake --build --preset release --target wsgemm_blas
fi
exec sh tests/foreign/scalapack.sh "$library" build/scalapack "${1:-2000}" "${2:-64}"
