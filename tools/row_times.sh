#!/bin/sh
# Times all rows of half precision at products drawn with new seeds, for tools/fit_model.py and tools/row_times.py:
#
#   sh tools/row_times.sh PROGRAM FOLDER [COUNT]
#
# PROGRAM: bench_gpu_gemm. FOLDER gets uniform.jsonl, classes.jsonl to fit to, and the same with _test. COUNT: the products of the first
# (300); the others have half of it, or a quarter. About a minute on an H200.
set -eu
program=$1 out=$2 count=${3:-300}
seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
export WSGEMM_TUNE=off
run() { # name, count, arguments
  name=$1 n=$2
  shift 2
  seed=$((seed + 1))
  "$program" --suite row_times --types h --seed $seed --count "$n" --json "$out/$name.jsonl" "$@" >"$out/$name.txt" || echo "$name: exit $?"
  echo "$name, seed $seed: $(grep -c '^row_times' "$out/$name.txt") products"
}
run uniform "$count" --distribution uniform
run classes $((count / 2))
run uniform_test $((count / 2)) --distribution uniform
run classes_test $((count / 4))
