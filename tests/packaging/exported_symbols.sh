#!/bin/sh
# The shared library exports exactly the functions that the header declares, under the version node WSGEMM_0, links nothing but
# the C library, and stays loaded after a dlclose (its threads run its code).
#   exported_symbols.sh LIBRARY HEADER
set -eu
library=$1 header=$2
for tool in nm readelf cc; do
  command -v $tool >/dev/null || {
    echo "skipped: no $tool"
    exit 77
  }
done

# Declarations may run over lines: joined first, then cut at each ';'. The name is the word before the first '('.
declared=$(cc -E -P "$header" | tr '\n' ' ' | tr ';' '\n' | grep 'visibility("default")' |
  sed 's/__attribute__((visibility("default")))//; s/(.*//' | grep -o 'wsgemm_[a-z0-9_]*$\|wsgemm_[a-z0-9_]* *$' | tr -d ' ')
exported=$(nm -D --defined-only --with-symbol-versions "$library" | awk '$2 != "A" {print $3}' | sort)
expected=$(printf '%s\n' "$declared" | sed 's/$/@@WSGEMM_0/' | sort)

n_declared=$(printf '%s\n' "$declared" | grep -c .)
if [ "$n_declared" -lt 20 ]; then
  echo "found only $n_declared functions in $header" >&2
  exit 1
fi
if [ "$exported" != "$expected" ]; then
  echo "the header declares (left), the library exports (right):" >&2
  printf '%s\n' "$expected" >"$library.declared"
  printf '%s\n' "$exported" | diff "$library.declared" - >&2 || true
  rm -f "$library.declared"
  exit 1
fi

foreign=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -Ev '^(libc|libm|libpthread)\.so\.|^ld-linux' || true)
if [ -n "$foreign" ]; then
  echo "the library needs $foreign" >&2
  exit 1
fi
readelf -d "$library" | grep -q 'NODELETE' || {
  echo "the library may be unmapped while its threads run" >&2
  exit 1
}
readelf -d "$library" | grep -q 'SONAME.*\[libwsgemm\.so\.0\]' || {
  echo "the library's SONAME is not libwsgemm.so.0" >&2
  exit 1
}
echo "$n_declared functions, all exported, nothing else"
