#!/bin/sh
# What tools/setup.sh asks for: for the demo no package that only tests need; and nothing where all of it is there. Runs a copy of it,
# with programs in the place of Debian's and Python's that write down what they are asked.
#   setup.sh SOURCE_DIR SCRATCH_DIR
set -eu
source=$1 scratch=$2
rm -rf "$scratch"
mkdir -p "$scratch/bin" "$scratch/tools/package"
cp "$source/tools/setup.sh" "$scratch/tools/"
cp "$source"/tools/package/requirements-*.txt "$scratch/tools/package/"

fail() {
  echo "setup.sh: $*" >&2
  exit 1
}
program() { # NAME: a program whose text comes from standard input
  { echo '#!/bin/sh' && cat; } >"$scratch/bin/$1"
  chmod +x "$scratch/bin/$1"
}
export SCRATCH="$scratch"
program dpkg-query <<'END'
for package in "$@"; do :; done
grep -qx "$package" "$SCRATCH/installed" 2>/dev/null && printf installed
END
program apt-get <<'END'
[ "$1" = install ] || exit 0
shift
for word in "$@"; do
  case "$word" in -*) ;; *) echo "$word" | tee -a "$SCRATCH/installed" >>"$SCRATCH/asked" ;; esac
done
END
program sudo <<'END'
exec "$@"
END
program python3 <<'END'
case "$*" in
  "-m venv --clear .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *"--requirement "*) for file in "$@"; do :; done; echo "$file" >>"$SCRATCH/asked" ;;
esac
END

asked() { # PURPOSE: one line, what was asked for
  : >"$scratch/asked"
  PATH="$scratch/bin:$PATH" sh "$scratch/tools/setup.sh" "$@" >"$scratch/log" 2>&1 || fail "$* fails: $(cat "$scratch/log")"
  tr '\n' ' ' <"$scratch/asked"
}
demo=$(asked demo)
case "$demo" in
  *clang* | *aarch64* | *arm64* | *qemu* | *g++* | *requirements-test*) fail "the demo asks for $demo" ;;
  *gcc*cmake*requirements-demo.txt*) ;;
  *) fail "the demo asks for $demo only" ;;
esac
[ -z "$(asked demo)" ] || fail "a second demo asks for $(cat "$scratch/asked")"
test=$(asked)
case "$test" in
  *gcc\ * | *cmake*) fail "asked for again: $test" ;;
  *clang*qemu-user*requirements-test.txt*) ;;
  *) fail "the tests ask for $test only" ;;
esac
[ -z "$(asked test)$(asked demo)" ] || fail "not all was there: $(cat "$scratch/asked")"
if sh "$scratch/tools/setup.sh" nonsense 2>/dev/null; then fail "'nonsense' is taken"; fi
echo "demo: $demo"
