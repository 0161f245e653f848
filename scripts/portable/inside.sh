#!/bin/bash
# The part of scripts/make-portable.sh that runs in the Debian 11: inside.sh VERSION JOBS KIND….
# Builds the libraries that are not taken from Debian 11, then sifr once, then each kind of package
# by the script of its name.
set -euo pipefail
version=$1 jobs=$2
shift 2
cd /root
. portable/portable-parts.sh
export PATH=/opt/cmake/bin:$PATH

# Debian 11's liburing and jansson are too old. Versions of the other two decide what a letter is, and
# so what a tokenizer makes of a text: those of Debian 12 here, too.
say "liburing, jansson, PCRE2 and utf8proc of Debian 12, oneDNN of PyPI"
quietly apt-get source -qq --download-only --only-source {liburing,jansson,pcre2,utf8proc}/bookworm
for name in liburing jansson pcre2 utf8proc; do quietly dpkg-source --no-check -x "$name"_*.dsc $name; done
(cd liburing && quietly ./configure --prefix=/usr/local --libdir=/usr/local/lib --mandir=/tmp/man &&
    quietly make -C src -j"$jobs" && quietly make install)
library() { # NAME OPTION…
    local name=$1
    shift
    quietly cmake -S "$name" -B "$name-build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
        -DCMAKE_INSTALL_PREFIX=/usr/local -DCMAKE_INSTALL_LIBDIR=lib "$@"
    quietly ninja -C "$name-build" -j"$jobs" install
}
library pcre2 -DPCRE2_SUPPORT_JIT=ON -DPCRE2_BUILD_TESTS=OFF -DPCRE2_BUILD_PCRE2GREP=OFF
library utf8proc
library jansson -DJANSSON_BUILD_SHARED_LIBS=ON -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON \
    -DJANSSON_EXAMPLES=OFF
for wheel in wheels/*.whl; do quietly unzip -qo "$wheel" -d onednn; done
cp -r onednn/*.data/data/* /usr/local/
ldconfig

python=OFF
case " $* " in *" wheel "*)
    # The headers of Debian 12's CPython: Debian 11's is older than the limited API that sifr uses.
    quietly apt-get download -qq libpython3.11-dev/bookworm
    dpkg-deb --fsys-tarfile libpython3.11-dev_*.deb | tar -C / -x ./usr/include
    python=ON
    ;;
esac

say "sifr"
export PKG_CONFIG_PATH=/usr/local/lib/pkgconfig
tar -xf sifr-"$version".tar.gz
quietly cmake -S sifr-"$version" -B build -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_FLAGS_RELEASE='-O3 -DNDEBUG' -DSIFR_TESTS=OFF -DSIFR_CUDA=OFF \
    -DSIFR_PYTHON=$python -DPython_INCLUDE_DIR=/usr/include/python3.11 \
    -DSIFR_PARQUET=ON -DSIFR_CARQUET="$(echo /root/carquet-*.tar.gz)" -DCMAKE_INSTALL_LIBDIR=lib
quietly ninja -C build -j"$jobs"
for kind in "$@"; do . "portable/$kind.sh"; done
