#!/bin/sh
# Every file named in the README's section "Path of one call" exists.
#   readme_paths.sh SOURCE_DIR
set -eu
cd "$1"
section=$(awk '/^#+ / { inside = /Path of one call/; next } inside' README.md)
paths=$(printf '%s\n' "$section" | grep -oE '[A-Za-z0-9_./-]+\.(c|h|def|cu|cuh|py|pyi)\b' | sort -u || true)
n_paths=$(printf '%s\n' "$paths" | grep -c . || true)
# The path runs through the header, five sources at least and a kernel.
if [ "$n_paths" -lt 6 ]; then
  echo "README.md names only $n_paths files under 'Path of one call'" >&2
  exit 1
fi
missing=0
for path in $paths; do
  if [ ! -f "$path" ]; then
    echo "README.md names $path, which does not exist" >&2
    missing=1
  fi
done
[ $missing -eq 0 ] && echo "$n_paths files, all there"
