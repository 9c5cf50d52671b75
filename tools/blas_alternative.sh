#!/bin/sh
# Makes wsgemm the system's BLAS, or takes it back: an alternative of Debian's libblas.so.3 (as root).
#   blas_alternative.sh install [LIBDIR]   LIBDIR: where wsgemm was installed; default: found from this script's place, or /usr/local/lib
#   blas_alternative.sh remove [LIBDIR]
#
# Programs that need libblas.so.3 then load LIBDIR/wsgemm/libblas.so.3: Level 3 is wsgemm's, Level 1 and 2 are passed on to the BLAS
# that was there before (docs/blas.md), which stays installed. Nothing is registered before it has been seen to load.
set -eu
fail() {
  printf 'blas_alternative: %s\n' "$*" >&2
  exit 1
}
what=${1:-} libdir=${2:-}
case "$what" in install | remove) ;; *) fail "'$what' is neither install nor remove" ;; esac
command -v update-alternatives >/dev/null || fail "no update-alternatives: not a Debian system"

if [ -z "$libdir" ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  for libdir in "$here/../../lib" "$here"/../../lib/*-linux-gnu /usr/local/lib /usr/local/lib/*-linux-gnu; do
    [ -e "$libdir/wsgemm/libblas.so.3" ] && break
  done
fi
file=$(realpath -s "$libdir/wsgemm/libblas.so.3")
[ -e "$file" ] || fail "no $file: install wsgemm first (cmake --install), or name its folder of libraries"
library=$(realpath "$file")

# The architecture's names: those of the reference BLAS's alternative.
name=
for link in /usr/lib/*-linux-gnu*/libblas.so.3; do
  [ -e "$link" ] || continue
  triplet=$(basename "$(dirname "$link")")
  name=libblas.so.3-$triplet
  update-alternatives --query "$name" >/dev/null 2>&1 && break
  name=
done
[ -n "$name" ] || fail "no alternatives of libblas.so.3: install libblas3 or libopenblas0 first"

if [ "$what" = remove ]; then
  update-alternatives --remove "$name" "$file"
  exit 0
fi
# Loaded by way of another folder, as the alternative's link will be: libwsgemm must be found all the same.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ln -s "$library" "$scratch/libblas.so.3"
missing=$(ldd "$scratch/libblas.so.3" 2>&1 | grep 'not found' || true)
[ -z "$missing" ] || fail "$library does not load from elsewhere:$missing (was the installed tree moved? run ldconfig, or install again)"
[ "$(ls /usr/lib/"$triplet"/*/libblas.so.3 2>/dev/null | grep -cv /wsgemm/)" -gt 0 ] ||
  fail "no other BLAS for Level 1 and 2: install libopenblas0 or libblas3"
update-alternatives --install "/usr/lib/$triplet/libblas.so.3" "$name" "$file" 200
update-alternatives --query "$name" | sed -n 's/^Value: /libblas.so.3 is now /p'
lapack=$(readlink -f "/usr/lib/$triplet/liblapack.so.3" 2>/dev/null || true)
case "$lapack" in
  *openblas*)
    echo "note: liblapack.so.3 is OpenBLAS's, whose LAPACK calls OpenBLAS's own Level 3. For LAPACK on wsgemm:"
    echo "  update-alternatives --set liblapack.so.3-$triplet /usr/lib/$triplet/lapack/liblapack.so.3"
    ;;
esac
