#!/bin/sh
# LAPACK's own tests with libwsgemm_blas under Debian's LAPACK: no failure that the system's BLAS does not have. Each program runs
# twice, as it is and with the library preloaded, and what it says is compared.
#   lapack.sh lin|eig LETTER LIBRARY SCRATCH_DIR [INPUT...]
# lin: linear equations, least squares; eig: eigenvalues, singular values, of all kinds, or of those named (nep sep svd ...).
# LETTER: s d c z. The programs are built here, from LAPACK's sources (tools/lapack_source.sh).
set -eu
part=$1 letter=$2 library=$3 scratch=$4
shift 4
source=$(cd "$(dirname "$0")/../.." && pwd)/build/foreign/lapack
for tool in gfortran make; do
  command -v $tool >/dev/null || {
    echo "skipped: no $tool"
    exit 77
  }
done
lib=/usr/lib/$(gcc -print-multiarch)
for file in "$source/TESTING/Makefile" "$lib/lapack/liblapack.so.3" "$lib/libblas.so.3"; do
  [ -e "$file" ] || {
    echo "skipped: no $file"
    exit 77
  }
done

# ---- build ----
tree=$scratch/$letter
mkdir -p "$tree"
[ -e "$tree/TESTING" ] || cp -R "$source/TESTING" "$tree/"
cat >"$tree/make.inc" <<END
SHELL = /bin/sh
FC = gfortran
FFLAGS = -O1 -w -frecursive
FFLAGS_DRV = \$(FFLAGS)
FFLAGS_NOOPT = -O0 -w -frecursive
AR = ar
ARFLAGS = cr
RANLIB = ranlib
BLASLIB = $lib/libblas.so.3
LAPACKLIB = $lib/lapack/liblapack.so.3
TMGLIB = \$(TOPSRCDIR)/libtmglib.a
END
case "$letter" in s) type=single ;; d) type=double ;; c) type=complex ;; *) type=complex16 ;; esac
make -s -C "$tree/TESTING/MATGEN" "$type" >"$tree/build.log" 2>&1 || {
  tail -n 5 "$tree/build.log"
  exit 1
}
case "$part" in lin) folder=LIN program=xlintst$letter ;; *) folder=EIG program=xeigtst$letter ;; esac
make -s -C "$tree/TESTING/$folder" "$program" >>"$tree/build.log" 2>&1 || {
  tail -n 5 "$tree/build.log"
  exit 1
}

# ---- run, with the reference LAPACK in both cases ----
if [ "$part" = lin ]; then
  inputs=${letter}test
else
  inputs="nep sep se2 svd ${letter}ec ${letter}ed ${letter}gg ${letter}gd ${letter}sb ${letter}sg ${letter}bal ${letter}bak ${letter}gbal ${letter}gbak
    ${letter}bb glm gqr gsv csd lse"
fi
if [ $# -gt 0 ]; then inputs=$*; fi
export LD_LIBRARY_PATH="$lib/lapack"
verdict=0
for input in $inputs; do
  given=$tree/TESTING/$input.in
  system=$tree/$part-$input.system ours=$tree/$part-$input.ours
  (cd "$tree" && "./TESTING/$folder/$program" <"$given") >"$system" 2>&1 || true
  (cd "$tree" && WSGEMM_BLAS_LOG=1 LD_PRELOAD="$library" "./TESTING/$folder/$program" <"$given") >"$ours" 2>"$ours.log" || true
  # What each says: "DGE: 12 of 3653 tests failed", by what was tested; and messages of other kinds.
  for said in "$system" "$ours"; do
    awk '/failed to pass the threshold/ { name = $1; for (i = 2; i <= NF; i++) if ($i == "out") n[name] += $(i - 1) }
      /not detected|FAILED|Error|\*\*\*|illegal value/ { n["messages"]++ }
      /passed the|completed|tests run|out of|End of tests/ { n_said++ }
      END { print "said", n_said + 0; for (name in n) print name, n[name] }' "$said" | sort >"$said.sum"
  done
  worse=$(awk 'NR == FNR { theirs[$1] = $2; next }
    $1 == "said" { if ($2 < theirs["said"]) print "says less: " $2 " lines, not " theirs["said"]; seen = 1; next }
    $2 > theirs[$1] + 0 { print $1 " " $2 " failures, the system has " theirs[$1] + 0 }' "$system.sum" "$ours.sum")
  calls=$(awk '/calls/ { n += $3 } END { print n + 0 }' "$ours.log")
  failures=$(awk '$1 != "said" { n += $2 } END { print n + 0 }' "$ours.sum")
  echo "$program < $input.in: $(sed -n 's/^said //p' "$ours.sum") lines, $failures failures, $calls calls taken"
  if [ -n "$worse" ]; then
    echo "$worse" | sed 's/^/  /'
    verdict=1
  fi
  if [ "$(sed -n 's/^said //p' "$ours.sum")" -eq 0 ] || grep -q 'was not computed' "$ours.log"; then
    tail -n 5 "$ours" "$ours.log"
    verdict=1
  fi
done
exit $verdict
