#!/bin/sh
# tools/blas_alternative.sh on this system, whose alternatives stay as they are: the script sees copies of them, in a mount namespace of its
# own. NumPy and SciPy of Debian on the alternative, then without it again. As root, or where users may have namespaces.
#   alternative_in_namespace.sh BUILD_DIR SCRATCH_DIR
# The same with R and Octave, by hand: alternative.sh.
set -eu
if [ "${1:-}" != inside ]; then
  skip() {
    echo "skipped: $*"
    exit 77
  }
  command -v update-alternatives >/dev/null || skip "no update-alternatives"
  /usr/bin/python3 -c 'import numpy, scipy' 2>/dev/null || skip "no NumPy and SciPy of Debian"
  ls /usr/lib/*-linux-gnu*/blas/libblas.so.3 >/dev/null 2>&1 || skip "no reference BLAS of Debian"
  unshare --map-root-user --mount true 2>/dev/null || skip "no namespaces for this user"
  rm -rf "$2"
  mkdir -p "$2"
  cmake --install "$1" --prefix "$2/usr" >"$2/install.log" 2>&1 || {
    cat "$2/install.log"
    exit 1
  }
  exec unshare --map-root-user --mount sh "$0" inside "$(cd "$2" && pwd)"
fi
scratch=$2
for folder in /etc/alternatives /var/lib/dpkg/alternatives; do
  copy=$scratch/$(basename "$(dirname $folder)")
  cp -a $folder "$copy" 2>/dev/null || cp -r --no-dereference $folder "$copy"
  mount --bind "$copy" $folder
done
: >"$scratch/log"
mount --bind "$scratch/log" /var/log/alternatives.log 2>/dev/null || true
reference=$(ls /usr/lib/*-linux-gnu*/blas/libblas.so.3 | head -n 1)
triplet=$(basename "$(dirname "$(dirname "$reference")")")
alternative=libblas.so.3-$triplet
value() { update-alternatives --query "$alternative" | sed -n 's/^Value: //p'; }

# libwsgemm is where a system would have been told by ldconfig. Debian's own LAPACK calls libblas.so.3; OpenBLAS's does not.
export WSGEMM_BLAS_LOG=1 LD_LIBRARY_PATH="$scratch/usr/lib:/usr/lib/$triplet/lapack"
n_calls() {
  /usr/bin/python3 -B "$(dirname "$0")/try_alternative.py" >"$scratch/said" 2>&1 || {
    cat "$scratch/said" >&2
    exit 1
  }
  awk '/^wsgemm_blas/ { n += $3 } END { print n + 0 }' "$scratch/said"
}
fail() {
  echo "$*"
  exit 1
}

script=$scratch/usr/share/wsgemm/blas_alternative.sh
before=$(value)
sh "$script" install
case "$(value)" in "$scratch"/*) ;; *) fail "after installing, $alternative is $(value)" ;; esac
calls=$(n_calls)
[ "$calls" -gt 4 ] || fail "NumPy and SciPy called the library $calls times"
sh "$script" remove
[ "$(value)" = "$before" ] || fail "$alternative was $before, and is $(value)"
[ "$(n_calls)" -eq 0 ] || fail "the library is called after it has been removed"
echo "NumPy and SciPy: good, $calls calls taken; then $before again"
