# Sourced in the Debian 11 of scripts/make-portable.sh, in /root: what the scripts of this folder
# share. `quietly` leaves what a command said in /root/log.
glibc='^(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv))\.so'
quietly() { "$@" >/root/log 2>&1 || { echo "$*: exit code $?" >&2; exit 1; }; }
say() { echo "== $* ($SECONDS s)"; }

beside_glibc() { # FILE…: "NAME PATH" of each library that they load and that is not glibc's
    ldd "$@" | sed -n 's/^[[:space:]]*\([^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p' | sort -u |
        grep -vE "$glibc"
}

copy_libraries() { # LIST FOLDER: those of LIST ("NAME PATH" a line), without what debuggers read
    mkdir -p "$2"
    while read -r library path; do cp -L "$path" "$2/$library"; done <"$1"
    strip --strip-unneeded "$2"/*
}

copy_licences() { # LIST FOLDER: of the libraries of LIST, of carquet, and the texts that those name
    local into=$2 library path package
    mkdir -p "$into"
    while read -r library path; do
        case $library in
        libdnnl*) cp /usr/local/share/doc/onednn/LICENSE "$into/oneDNN" &&
            cp /usr/local/share/doc/onednn/THIRD-PARTY-PROGRAMS "$into/oneDNN-third-party" ;;
        libjansson*) cp /root/jansson/LICENSE "$into/jansson" ;;
        libpcre2*) cp /root/pcre2/LICENCE "$into/pcre2" ;;
        libutf8proc*) cp /root/utf8proc/LICENSE.md "$into/utf8proc" ;;
        liburing*) cp /root/liburing/LICENSE "$into/liburing" &&
            cat /root/liburing/COPYING* >>"$into/liburing" ;;
        *)
            # As the loader named it: dpkg does not know that /lib is /usr/lib.
            package=$(dpkg -S "$path" 2>/dev/null || dpkg -S "/usr$path")
            package=${package%%:*}
            cp "/usr/share/doc/$package/copyright" "$into/$package"
            ;;
        esac
    done <"$1"
    tar -xzOf /root/carquet-*.tar.gz --wildcards 'carquet-*/LICENSE' >"$into/carquet"
    # Debian keeps these apart.
    for text in GPL-2 GPL-3 LGPL-2.1 Apache-2.0; do
        ! grep -qr "common-licenses/${text%-*}" "$into" || cp "/usr/share/common-licenses/$text" "$into/"
    done
}
