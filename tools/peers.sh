#!/bin/sh
# Builds AOCL-BLIS, or BLIS, out of a folder with its sources, as a peer of `wsgemm bench`: CBLAS with 32-bit integers and threads. The
# source tree stays as it is, and nothing is installed (AOCL-BLIS 5.2 cannot, out of its tree). Prints the path of the library, for --peer
# or WSGEMM_BENCH_PEERS:
#   WSGEMM_BENCH_PEERS=$(sh tools/peers.sh ~/aocl-blis) build/cpu/wsgemm bench --suite wide
#   peers.sh SOURCE [FOLDER]    default of FOLDER, where it is built: build/peers; BLIS_CONFIG=zen5 (default: auto)
set -eu
if [ $# -lt 1 ] || [ ! -x "$1/configure" ]; then
  echo "peers: usage: peers.sh SOURCE [FOLDER]; SOURCE is a folder of BLIS with its configure" >&2
  exit 2
fi
source=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
folder=${2:-$PWD/build/peers}
mkdir -p "$folder"
cd "$folder"
{
  "$source/configure" --enable-cblas --enable-threading=openmp --int-size=64 --blas-int-size=32 \
    "${BLIS_CONFIG:-auto}"
  make -j "$(nproc)"
} >build.log 2>&1 || {
  echo "peers: the build failed; the end of $PWD/build.log:" >&2
  tail -n 5 build.log >&2
  exit 1
}
# With threads its name may tell so.
for library in "$PWD"/lib/*/libblis-mt.so "$PWD"/lib/*/libblis.so; do
  if [ -e "$library" ]; then
    echo "$library"
    exit 0
  fi
done
echo "peers: no library in $PWD/lib" >&2
exit 1
