#!/bin/sh
# Fetches LAPACK's source package from Debian, for its tests (tests/foreign): build/foreign/lapack is then a link to the unpacked
# folder. Nothing of it goes into the repository. Does nothing where it is there. Needs no root: apt keeps its lists in that folder.
#   lapack_source.sh
set -eu
cd "$(dirname "$0")/.."
folder=$PWD/build/foreign
[ -e "$folder/lapack/TESTING" ] && exit 0
command -v apt-get >/dev/null || {
  echo "lapack_source: no apt-get here" >&2
  exit 1
}
mkdir -p "$folder/apt/lists/partial"
cd "$folder"
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
echo "deb-src http://deb.debian.org/debian $release main" >apt/sources.list
apt="apt-get -q -o Dir::Etc::SourceList=$folder/apt/sources.list -o Dir::Etc::SourceParts=- -o Dir::State::Lists=$folder/apt/lists"
if [ "$(id -u)" -eq 0 ]; then apt="$apt -o APT::Sandbox::User=root"; fi
$apt update
$apt source --download-only lapack
rm -rf apt
tar xzf lapack_*.orig.tar.gz
rm -f lapack_*.dsc lapack_*.debian.tar.*
ln -sfn "$(basename "$(ls -d lapack-[0-9]*)")" lapack
