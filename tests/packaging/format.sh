#!/bin/sh
# The C sources and headers are as clang-format leaves them (`clang-format -i FILE` puts one right).
#   format.sh SOURCE_DIR
set -eu
command -v clang-format >/dev/null || {
  echo "skipped: no clang-format"
  exit 77
}
cd "$1"
find . \( -path './build*' -o -path './.*' \) -prune -o \
  \( -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -exec clang-format --dry-run -Werror {} +
