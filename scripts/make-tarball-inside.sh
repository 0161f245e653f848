#!/bin/bash
# The part of scripts/make-tarball.sh that runs in the Debian 11: make-tarball-inside.sh VERSION JOBS.
set -euo pipefail
version=$1 jobs=$2
cd /root
PATH=/opt/cmake/bin:$PATH
exec 3>&1
quietly() { "$@" >log 2>&1 || { echo "$*: exit code $?" >&2; exit 1; }; }
say() { echo "== $* ($SECONDS s)"; }

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

say "sifr"
export PKG_CONFIG_PATH=/usr/local/lib/pkgconfig
tar -xf sifr-"$version".tar.gz
quietly cmake -S sifr-"$version" -B build -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_FLAGS_RELEASE='-O3 -DNDEBUG' -DSIFR_TESTS=OFF -DSIFR_CUDA=OFF \
    -DSIFR_PARQUET=ON -DSIFR_CARQUET="$(echo /root/carquet-*.tar.gz)" -DCMAKE_INSTALL_LIBDIR=lib
quietly ninja -C build -j"$jobs"
name=sifr-$version-linux-x86_64
top=/root/$name
quietly cmake --install build --prefix "$top" --strip
# The static library needs those of others; the shared one has them beside it.
rm "$top/lib/libsifr.a"
sed -i '/^Libs.private/d' "$top/lib/pkgconfig/sifr.pc"
mkdir -p "$top/lib/sifr" "$top/share/doc/sifr"

say "what is beside glibc"
glibc='^(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv))\.so'
ldd "$top/bin/sifr" "$top"/lib/libsifr.so.* |
    sed -n 's/^[[:space:]]*\([^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p' | sort -u >libraries
while read -r library path; do
    [[ $library =~ $glibc ]] || cp -L "$path" "$top/lib/sifr/$library"
done <libraries
strip --strip-unneeded "$top"/lib/sifr/*
patchelf --force-rpath --set-rpath '$ORIGIN/../lib/sifr' "$top/bin/sifr"
for library in "$top"/lib/libsifr.so.*; do
    [ -L "$library" ] || patchelf --force-rpath --set-rpath '$ORIGIN/sifr' "$library"
done
for library in "$top"/lib/sifr/*; do patchelf --force-rpath --set-rpath '$ORIGIN' "$library"; done

say "licences"
licences=$top/share/doc/sifr/licences
mkdir -p "$licences"
while read -r library path; do
    [[ $library =~ $glibc ]] && continue
    case $library in
    libdnnl*) cp /usr/local/share/doc/onednn/LICENSE "$licences/oneDNN" &&
        cp /usr/local/share/doc/onednn/THIRD-PARTY-PROGRAMS "$licences/oneDNN-third-party" ;;
    libjansson*) cp jansson/LICENSE "$licences/jansson" ;;
    libpcre2*) cp pcre2/LICENCE "$licences/pcre2" ;;
    libutf8proc*) cp utf8proc/LICENSE.md "$licences/utf8proc" ;;
    liburing*) cp liburing/LICENSE "$licences/liburing" && cat liburing/COPYING* >>"$licences/liburing" ;;
    *)
        # As the loader named it: dpkg does not know that /lib is /usr/lib.
        package=$(dpkg -S "$path" 2>/dev/null || dpkg -S "/usr$path")
        package=${package%%:*}
        cp "/usr/share/doc/$package/copyright" "$licences/$package"
        ;;
    esac
done <libraries
tar -xzOf carquet-*.tar.gz --wildcards 'carquet-*/LICENSE' >"$licences/carquet"
# Texts that those name, and that Debian keeps apart.
for text in GPL-2 GPL-3 LGPL-2.1 Apache-2.0; do
    ! grep -qr "common-licenses/${text%-*}" "$licences" || cp "/usr/share/common-licenses/$text" "$licences/"
done
cp sifr-"$version"/{README.md,CHANGELOG.md} "$top/share/doc/sifr/"
cp -r sifr-"$version"/docs sifr-"$version"/examples "$top/share/doc/sifr/"
cp sifr-"$version"/scripts/small-run.sh "$top/share/doc/sifr/"

# What is promised: nothing newer than glibc 2.31, and no library that is neither there nor glibc's.
objects() { find "$top/bin" "$top/lib" -type f -exec objdump "$1" {} + 2>/dev/null || :; } # others, too
newest=$(objects -T | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
echo "the newest glibc that it needs: ${newest#GLIBC_}"
[ "$(printf '%s\n' GLIBC_2.31 "$newest" | sort -V | tail -n 1)" = GLIBC_2.31 ] || { echo "newer than 2.31" >&2; exit 1; }
objects -p | sed -n 's/^ *NEEDED *//p' | sort -u |
    while read -r needed; do
        [[ $needed =~ $glibc || -e $top/lib/sifr/$needed || -e $top/lib/$needed ]] ||
            { echo "$needed is not packed" >&2 && exit 1; }
    done
tar --sort=name --owner=0 --group=0 -czf "$name.tar.gz" "$name"
say "packed $(find "$top/lib/sifr" -type f | wc -l) libraries, $(find "$licences" -type f | wc -l) texts of licences"
