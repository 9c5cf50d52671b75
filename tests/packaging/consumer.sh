#!/bin/sh
# Builds and runs the consumer programs by one way of using wsgemm, from C and from C++, shared and static; or runs the
# installed command.
#   consumer.sh command|find_package|pkg_config|add_subdirectory|fetch_content SOURCE_DIR BUILD_DIR SCRATCH_DIR C_COMPILER
# BUILD_DIR is a finished build, which the first three install; SCRATCH_DIR is emptied first.
set -eu
way=$1 source=$2 build=$3 scratch=$4 cc=$5
here=$source/tests/packaging

rm -rf "$scratch"
mkdir -p "$scratch"
# A user's shell may set these; they would lead to some other wsgemm.
unset CMAKE_PREFIX_PATH PKG_CONFIG_PATH LD_LIBRARY_PATH DESTDIR || true

fail() {
  echo "consumer.sh: $*" >&2
  exit 1
}

# The MAJOR, MINOR or PATCH of the header's version.
part() { sed -n "s/^#define WSGEMM_VERSION_$1 //p" "$source/include/wsgemm.h"; }

# check_run PROGRAM shared|static: runs it, and sees that it takes wsgemm from where it should.
check_run() {
  needed=$(readelf -d "$1" | grep -c 'NEEDED.*libwsgemm\.so' || true)
  case "$2" in
    shared) [ "$needed" -eq 1 ] || fail "$1 does not need libwsgemm.so" ;;
    static) [ "$needed" -eq 0 ] || fail "$1 needs libwsgemm.so though it is linked statically" ;;
  esac
  "$1"
}

# cmake_build SOURCE_DIR NAME, then further arguments of cmake: builds in the folder NAME, quietly unless it fails.
cmake_build() {
  from=$1 name=$2
  shift 2
  if ! {
    cmake -S "$from" -B "$scratch/$name" -G Ninja -DCMAKE_C_COMPILER="$cc" "$@" && cmake --build "$scratch/$name" -j 1
  } >"$scratch/$name.log" 2>&1; then
    cat "$scratch/$name.log" >&2
    fail "$way: $name does not build"
  fi
}

cmake_consumer() { # NAME, then further arguments of cmake
  cmake_build "$here/$way" "$@"
}

# Debug builds, where one is enough, save most of this test's time.
static_library() {
  cmake_build "$source" static_library -DCMAKE_BUILD_TYPE=Debug -DBUILD_SHARED_LIBS=OFF -DWSGEMM_BUILD_TESTS=OFF -DWSGEMM_BUILD_CLI=OFF -DWSGEMM_CUDA=OFF
}

# Installs to one place and moves the tree, so that a path of the build machine left in it is found out.
install_moved() { # BUILD_DIR NAME
  cmake --install "$1" --prefix "$scratch/staged" >"$scratch/install.log" || fail "cmake --install $1"
  mv "$scratch/staged" "$scratch/$2"
  for file in include/wsgemm.h share/doc/wsgemm/LICENSE; do
    [ -f "$scratch/$2/$file" ] || fail "the installed tree lacks $file"
  done
}

case "$way" in
  command)
    install_moved "$build" installed
    # shellcheck disable=SC2016 # ORIGIN is the loader's word
    readelf -d "$scratch/installed/bin/wsgemm" | grep -q 'R.*PATH.*\[\$ORIGIN/' || fail "the command finds its library by luck only"
    "$scratch/installed/bin/wsgemm" info
    [ "$("$scratch/installed/bin/wsgemm" --version)" = "wsgemm $(part MAJOR).$(part MINOR).$(part PATCH)" ] ||
      fail "the command does not tell the header's version"
    for file in share/man/man1/wsgemm.1 share/bash-completion/completions/wsgemm share/zsh/site-functions/_wsgemm; do
      grep -q wsgemm "$scratch/installed/$file" || fail "the installed tree lacks $file"
    done
    ;;
  find_package)
    install_moved "$build" installed
    find_package_consumer() { # NAME INSTALLED_TREE
      cmake_consumer "$1" -DCMAKE_PREFIX_PATH="$scratch/$2" -DWSGEMM_WANTED="$(part MAJOR).$(part MINOR)" \
        -DWSGEMM_NEXT="$(part MAJOR).$(($(part MINOR) + 1))"
    }
    find_package_consumer shared installed
    check_run "$scratch/shared/consumer_c" shared
    check_run "$scratch/shared/consumer_cxx" shared
    static_library
    install_moved "$scratch/static_library" installed_static
    find_package_consumer static_consumer installed_static
    check_run "$scratch/static_consumer/consumer_c" static
    ;;
  pkg_config)
    command -v pkg-config >/dev/null || {
      echo "skipped: no pkg-config"
      exit 77
    }
    install_moved "$build" installed
    pc() { # INSTALLED_TREE, then arguments of pkg-config
      tree=$1
      shift
      PKG_CONFIG_PATH=$(dirname "$(find "$scratch/$tree" -name wsgemm.pc)") pkg-config "$@" wsgemm
    }
    [ "$(pc installed --modversion)" = "$(part MAJOR).$(part MINOR).$(part PATCH)" ] || fail "wsgemm.pc: not the header's version"
    # shellcheck disable=SC2046 # lists of flags
    "$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror "$here/consumer.c" -o "$scratch/shared" $(pc installed --cflags --libs)
    LD_LIBRARY_PATH=$(pc installed --variable=libdir) check_run "$scratch/shared" shared
    # A program with BLAS names only: libwsgemm_blas finds libwsgemm in the moved tree by itself.
    if [ -e "$(pc installed --variable=libdir)/pkgconfig/wsgemm_blas.pc" ]; then
      # shellcheck disable=SC2046
      "$cc" -std=c11 "$source/tests/blas/program.c" -o "$scratch/blas" \
        $(PKG_CONFIG_PATH="$(pc installed --variable=libdir)/pkgconfig" pkg-config --cflags --libs wsgemm_blas)
      [ "$(LD_LIBRARY_PATH=$(pc installed --variable=libdir) "$scratch/blas" level3)" = "dgemm 10 14 14 20" ] || fail "wsgemm_blas.pc"
      [ "$(LD_PRELOAD=$(pc installed --variable=libdir)/wsgemm/libblas.so.3 "$scratch/blas" level3)" = "dgemm 10 14 14 20" ] ||
        fail "wsgemm/libblas.so.3 does not load"
    fi
    static_library
    install_moved "$scratch/static_library" installed_static
    # All that the library needs: none of its files is left out, and nothing but the C library comes by itself.
    library=$(pc installed_static --variable=libdir)/libwsgemm.a
    # shellcheck disable=SC2046
    "$cc" -std=c11 "$here/consumer.c" -o "$scratch/static_consumer" -Wl,--whole-archive "$library" -Wl,--no-whole-archive \
      $(pc installed_static --cflags --libs --static)
    check_run "$scratch/static_consumer" static
    # glibc before 2.34 has dlopen and threads in libraries of their own: pkg-config names each that CMake's package names.
    named=" $(pc installed_static --libs --static) "
    exported=$(sed -n 's/.*INTERFACE_LINK_LIBRARIES "\(.*\)"/\1/p' "$(find "$scratch/installed_static" -name wsgemm_targets.cmake)")
    for library in $(printf '%s\n' "$exported" | grep -o 'LINK_ONLY:[A-Za-z:]*' | sed 's/LINK_ONLY://'); do
      case "$library $named" in
        "Threads::Threads "*" -pthread "*) ;;
        *" -l$library "*) ;;
        *) fail "pkg-config --static does not name $library, which the library needs:$named" ;;
      esac
    done
    case "$exported" in *LINK_ONLY:dl*LINK_ONLY:m*) ;; *) fail "CMake's package names $exported" ;; esac
    ;;
  add_subdirectory | fetch_content)
    build_type= # its own; one way by default is enough
    if [ "$way" = fetch_content ]; then build_type=-DCMAKE_BUILD_TYPE=Debug; fi
    # shellcheck disable=SC2086 # may be none
    cmake_consumer shared $build_type -DWSGEMM_SOURCE="$source" -DWSGEMM_CUDA=OFF
    check_run "$scratch/shared/consumer_c" shared
    check_run "$scratch/shared/consumer_cxx" shared
    [ "$(cd "$scratch/shared" && ctest -N | sed -n 's/^Total Tests: //p')" = 0 ] || fail "wsgemm's tests run in its parent"
    cmake_consumer static -DCMAKE_BUILD_TYPE=Debug -DWSGEMM_SOURCE="$source" -DWSGEMM_CUDA=OFF -DBUILD_SHARED_LIBS=OFF
    check_run "$scratch/static/consumer_c" static
    ;;
  *) fail "unknown way: $way" ;;
esac
