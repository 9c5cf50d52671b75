#!/bin/sh
# Builds the sdist, and of it a manylinux wheel with the CPU part, the GPU part and the command; tries the wheel in a venv of its own.
#   wheel.sh [OUT]    OUT: where both go; dist/ if not given
# WSGEMM_CUDA_ARCHITECTURES: for which GPUs (all; 90a takes 3 minutes of two cores); WSGEMM_CUDA=OFF: none.
#
# Built twice of one commit, both files are the same, byte for byte: times come from the commit, no path of this machine is in
# them. The wheel's tag is that of the newest glibc symbol in it. Uses .venv of the sources, which tools/setup.sh makes.
set -eu
cd "$(dirname "$0")/.."
root=$PWD out=${1:-$PWD/dist}
mkdir -p "$out"
out=$(cd "$out" && pwd)
python=$root/.venv/bin/python
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH PYTHONHASHSEED=0 LC_ALL=C TZ=UTC

say() { printf 'wheel: %s\n' "$*"; }
fail() {
  printf 'wheel: %s\n' "$*" >&2
  exit 1
}
newest_glibc() { objdump -T "$@" | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -n 1 | cut -d. -f2; }

# hook DIRECTORY NAME ARGUMENTS: scikit-build-core, as pip calls it.
hook() {
  (cd "$1" && "$python" -c "import sys, scikit_build_core.build as b; print(b.$2(sys.argv[1], $3))" "$scratch/made" "$CUDA" "$ARCHITECTURES" "$scratch/build" \
    >"$scratch/$2.log" 2>&1) || { tail -40 "$scratch/$2.log" >&2; fail "$2 failed"; }
}
CUDA=${WSGEMM_CUDA:-ON} ARCHITECTURES=${WSGEMM_CUDA_ARCHITECTURES:-all}

mkdir "$scratch/made" "$scratch/sources"
git archive HEAD | tar x -C "$scratch/sources" # what is committed, and nothing else
say "sdist"
hook "$scratch/sources" build_sdist '{}'
sdist=$(echo "$scratch"/made/*.tar.gz)
rm -rf "$scratch/sources"
mkdir "$scratch/sources"
tar xzf "$sdist" -C "$scratch/sources" --strip-components=1

say "wheel: GPU part $CUDA, for $ARCHITECTURES"
CFLAGS="-ffile-prefix-map=$scratch=. ${CFLAGS:-}"
export CFLAGS
hook "$scratch/sources" build_wheel '{"cmake.define.WSGEMM_CUDA": sys.argv[2], "cmake.define.WSGEMM_CUDA_ARCHITECTURES": sys.argv[3], "build-dir": sys.argv[4]}'
made=$(echo "$scratch"/made/*.whl)
mkdir "$scratch/whole"
(cd "$scratch/whole" && "$python" -m zipfile -e "$made" .)
glibc=$(newest_glibc "$scratch"/whole/wsgemm/*.so "$scratch/whole/wsgemm/bin/wsgemm")
"$python" "$root/tools/package/manylinux.py" "$made" "manylinux_2_${glibc}_$(uname -m)" "$out" >"$scratch/name"
wheel=$out/$(cat "$scratch/name")
cp "$sdist" "$out"

# Nothing is there but Python: no compiler in the path, no index but a folder with NumPy.
say "trying it in a venv of its own"
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" download -q --disable-pip-version-check -d "$scratch/others" 'numpy>=1.22'
bare() { (cd "$scratch" && env -i PATH="$scratch/venv/bin" HOME="$scratch" "$scratch/venv/bin/python" "$@"); }
bare -m pip install -q --disable-pip-version-check --no-index --find-links "$scratch/others" "$wheel"
bare -m wsgemm doctor >"$scratch/doctor.txt" || {
  cat "$scratch/doctor.txt" >&2
  fail "the doctor found something wrong"
}
bare -c 'import doctest, sys, wsgemm; sys.exit(doctest.testmod(wsgemm).failed)'
bare -c 'import sys, wsgemm._plans as p; sys.exit(not p.NUMPY.is_in_c)' || say "without wsgemm_calls: calls from Python take longer"
if "$python" -c 'import twine' 2>/dev/null; then "$python" -m twine check --strict "$wheel" "$sdist"; fi
bytes=$(wc -c <"$wheel")
[ "$bytes" -le 26214400 ] || fail "the wheel has $bytes bytes, more than 25 MiB"
(cd "$out" && sha256sum "$(cat "$scratch/name")" "$(basename "$sdist")")
say "$bytes bytes: $wheel"
