# What tests of a library as a process loads it have in common; read by process.sh of tests/blas and tests/cublas. Skips where a
# tool is missing.
n_checks=0
fail() {
  echo "process.sh: $*" >&2
  exit 1
}
# expect TEXT COMMAND...: the command's output, stderr included, has this line (or these, with \n).
expect() {
  wanted=$1
  shift
  got=$("$@" 2>&1) || true
  case "
$got
" in *"
$wanted
"*) n_checks=$((n_checks + 1)) ;; *) fail "'$*' says '$got', not '$wanted'" ;; esac
}
for tool in nm readelf; do
  command -v $tool >/dev/null || {
    echo "skipped: no $tool"
    exit 77
  }
done
