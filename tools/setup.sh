#!/bin/sh
# Installs what wsgemm needs to be built and tested: Debian packages, and Python packages in .venv at the repository root.
#
# Does nothing, quickly, where all of it is there already. Installs Debian packages as root or through sudo; on another system
# it says which programs are missing. What needs what: docs of the tests; here only the list.
set -eu
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*"; }
fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

# To build and to test; then what only some tests use: OpenBLAS as a peer, clang for fuzzers and sanitizers, and an Arm
# compiler with an emulator for the NEON kernels.
packages="gcc g++ libc6-dev binutils cmake ninja-build pkg-config git python3 python3-venv
  libopenblas0-pthread libcmocka-dev clang clang-format libclang-rt-dev
  gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"

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
  for program in cc cmake ninja pkg-config python3; do
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

requirements=tools/package/requirements.txt
stamp=.venv/requirements.txt
if ! .venv/bin/python -c '' 2>/dev/null; then
  say "making .venv"
  make_venv
fi
if ! cmp -s "$requirements" "$stamp"; then
  say "installing Python packages into .venv"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
  cp "$requirements" "$stamp"
fi
say "all there"
