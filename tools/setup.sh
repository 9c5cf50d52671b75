#!/bin/sh
# Installs what wsgemm needs here: Debian packages, and Python packages in .venv at the repository root.
#   setup.sh demo   to build the command and to run tools/demo.sh
#   setup.sh        to run all tests, too: compilers for C++ and for Arm, clang, an emulator, pytest
#
# Does nothing, quickly, where all of it is there already. Installs Debian packages as root or through sudo; on another system
# it says which programs are missing.
set -eu
cd "$(dirname "$0")/.."
purpose=${1:-test}

say() { printf 'setup: %s\n' "$*"; }
fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

# To build and to run the demo.
packages="gcc libc6-dev binutils cmake ninja-build python3 python3-venv"
programs="cc cmake ninja python3"
case "$purpose" in
  demo) ;;
  test)
    # What only tests use: OpenBLAS as a peer, clang for fuzzers and sanitizers, an Arm compiler with an emulator for the NEON kernels;
    # for others' tests of the BLAS library (tests/foreign) a Fortran compiler, the reference BLAS and LAPACK, NumPy and SciPy on them,
    # ScaLAPACK and an MPI; ccache for the consumers in tests/packaging, which compile the library again.
    packages="$packages g++ pkg-config git libopenblas0-pthread clang clang-format libclang-rt-dev
      gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
      gfortran make ccache libblas3 liblapack3 python3-numpy python3-scipy python3-pytest python3-hypothesis
      openmpi-bin libscalapack-openmpi2.2"
    programs="$programs pkg-config"
    ;;
  *) fail "'$purpose' is neither demo nor test" ;;
esac

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    fail "not root and no sudo: cannot run: $*"
  fi
}

installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

if command -v dpkg-query >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1; then
  missing=
  for package in $packages; do
    installed "$package" || missing="$missing $package"
  done
  if [ -n "$missing" ]; then
    say "installing$missing"
    as_root apt-get update -q
    # shellcheck disable=SC2086 # a list of package names
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
  fi
else
  for program in $programs; do
    command -v "$program" >/dev/null 2>&1 || fail "needs $program; install it with this system's package manager"
  done
fi

make_venv() {
  # A python3 that comes before Debian's in PATH may lack venv.
  for python in python3 /usr/bin/python3; do
    if "$python" -m venv --clear .venv >/dev/null 2>&1; then
      return 0
    fi
  done
  fail "cannot make .venv: python3 -m venv does not work"
}

if ! .venv/bin/python -c '' 2>/dev/null; then
  say "making .venv"
  make_venv
fi
# A stamp is a copy of what was asked for. The demo's packages are among those of the tests.
cat tools/package/requirements-demo.txt tools/package/requirements-test.txt >.venv/wanted-test.txt
cp tools/package/requirements-demo.txt .venv/wanted-demo.txt
is_there() { cmp -s ".venv/wanted-$1.txt" ".venv/installed-$1.txt"; }
if ! is_there test && ! { [ "$purpose" = demo ] && is_there demo; }; then
  say "installing Python packages into .venv"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement "tools/package/requirements-$purpose.txt"
  cp ".venv/wanted-$purpose.txt" ".venv/installed-$purpose.txt"
fi
# LAPACK's sources, for their tests; without them those are skipped.
if [ "$purpose" = test ] && [ ! -e build/foreign/lapack ] && [ -e tools/lapack_source.sh ]; then
  say "fetching LAPACK's sources"
  sh tools/lapack_source.sh >/dev/null 2>&1 || say "cannot fetch LAPACK's sources"
fi
say "all there"
