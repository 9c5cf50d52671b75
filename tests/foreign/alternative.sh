#!/bin/sh
# tools/blas_alternative.sh in a throw-away Debian root: NumPy, SciPy, R and Octave on the alternative, then without it again. As root;
# downloads some hundred megabytes the first time. By hand, as it takes minutes:
#   alternative.sh BUILD_DIR ROOT    ROOT: made by debootstrap where it is not there; may be removed afterwards
set -eu
build=$1 root=$2
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
if [ ! -e "$root/usr/bin/dpkg" ]; then
  command -v debootstrap >/dev/null || {
    echo "skipped: no debootstrap"
    exit 77
  }
  debootstrap --variant=minbase "$release" "$root" http://deb.debian.org/debian
fi
if [ ! -e "$root/usr/bin/octave-cli" ]; then
  chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends libblas3 liblapack3 \
    libopenblas0-pthread python3-numpy python3-scipy octave r-base-core
fi
DESTDIR=$root cmake --install "$build" --prefix /usr/local >/dev/null
cp "$(dirname "$0")/try_alternative.py" "$root/tmp"
cat >"$root/tmp/try.sh" <<'END'
set -eu
alternative=libblas.so.3-$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || basename /usr/lib/*-linux-gnu)
before=$(update-alternatives --query "$alternative" | sed -n 's/^Value: //p')
sh /usr/local/share/wsgemm/blas_alternative.sh install
lapack=$(ls -d /usr/lib/*/lapack)
export WSGEMM_BLAS_LOG=1 LD_LIBRARY_PATH=$lapack
try() { # NAME COMMAND...: no error, and the library was called
  name=$1
  shift
  "$@" >/tmp/log 2>&1 || {
    cat /tmp/log
    echo "$name fails"
    exit 1
  }
  calls=$(awk '/^wsgemm_blas/ { n += $3 } END { print n + 0 }' /tmp/log)
  [ "$calls" -gt 0 ] || {
    echo "$name did not call the library"
    exit 1
  }
  echo "$name: good, $calls calls taken"
}
try NumPy-and-SciPy python3 /tmp/try_alternative.py
try R R --vanilla -q -e 'a <- matrix(runif(90000), 300); b <- runif(300); s <- svd(a); c <- chol(crossprod(a))
  stopifnot(max(abs(a %*% solve(a, b) - b)) < 1e-9, max(abs(s$u %*% diag(s$d) %*% t(s$v) - a)) < 1e-10,
    max(abs(crossprod(c) - crossprod(a))) < 1e-9, grepl("wsgemm", extSoftVersion()["BLAS"]))'
try Octave octave-cli --no-gui -q --eval 'a = rand(300); b = rand(300, 1); [q, r] = qr(a);
  assert(norm(a * (a \ b) - b) < 1e-9); assert(norm(q * r - a) < 1e-10); assert(norm(inv(a) * a - eye(300)) < 1e-7)'
unset WSGEMM_BLAS_LOG LD_LIBRARY_PATH
sh /usr/local/share/wsgemm/blas_alternative.sh remove
[ "$(update-alternatives --query "$alternative" | sed -n 's/^Value: //p')" = "$before" ] || {
  echo "the alternative is not what it was before"
  exit 1
}
python3 -c 'import numpy as np; a = np.random.rand(50, 50); a @ a'
echo "removed: $before again"
END
chroot "$root" sh /tmp/try.sh
