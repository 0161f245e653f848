# label: soak
# timeout: 600, not under sanitizers
# The library's binary interface beside the stored one, by libabigail (Debian's abigail-tools): abidiff
# finds no change, but for calls that are new and structs led by their size that have grown at their
# end. Of small libraries it finds what breaks, and lets that pass. `make test` does so without it
# (tests/scripts/test_abi.sh).
fail() { cat out; echo "failed: $1"; exit 1; }
"$SOURCE/scripts/install-deps.sh" abi >out 2>&1 || { echo "skipped: $(tail -n 1 out)"; exit 77; }
abi() { "$SOURCE/scripts/abi.py" "$@"; }
differs() { # STORED NOW: exit code of abidiff, what it says in out
    abi suppressions >suppressions || fail "abi.py suppressions"
    code=0
    abidiff --no-added-syms --suppressions suppressions "$1" "$2" >out 2>&1 || code=$?
}

export TREE=$PWD/small
mkdir -p small/include/sifr small/tests/abi
echo 'project(sifr VERSION 1.2.3 LANGUAGES C)' >small/CMakeLists.txt
echo '## 1.2.3, not released yet' >small/CHANGELOG.md
cat >header <<'H'
#include <stddef.h>
#include <stdint.h>
typedef enum sifr_kind { SIFR_A, SIFR_B } sifr_kind;
typedef struct sifr_options { size_t size; double first; int32_t second; } sifr_options;
void sifr_open(const sifr_options *options, sifr_kind kind);
void sifr_close(void);
H
library() { # SED: small.so of that header, small.abi
    sed "$1" header >small/include/sifr/a.h
    { echo '#include "a.h"' && sed -n 's/^\(void .*\);/\1 {}/p' small/include/sifr/a.h; } >small.c
    gcc -g -shared -fPIC -Wl,-soname,libsifr.so.1.2 -I small/include/sifr small.c -o small.so
    abi write small.so small.abi || fail "abidw"
}
library ''
abi renew small.so >out || fail "cannot be stored"
planted=0
for change in 's/second;/second; double third;/' 's/SIFR_B }/SIFR_B, SIFR_C }/' '$s/$/\nvoid sifr_new(int x);/'; do
    library "$change"
    differs small/tests/abi/libsifr.abi small.abi
    [ $code = 0 ] || fail "breaks: $change"
    planted=$((planted + 1))
done
for change in '/sifr_close/d' 's/double first/int64_t first/' 's/double first/double new, first/' \
    's/SIFR_A, SIFR_B/SIFR_B, SIFR_A/' 's/sifr_kind kind/long kind/'; do
    library "$change"
    differs small/tests/abi/libsifr.abi small.abi
    [ $((code & 4)) != 0 ] || fail "nothing found: $change"
    planted=$((planted + 1))
done

unset TREE
abi write "$BUILD/libsifr.so" libsifr.abi || fail "abidw"
differs "$SOURCE/tests/abi/libsifr.abi" libsifr.abi
[ $code = 0 ] || fail "the interface has changed (docs/c-interface.md)"
abi check "$BUILD/libsifr.so" >out || fail "the interface has changed"
added=$(abidiff --suppressions suppressions "$SOURCE/tests/abi/libsifr.abi" libsifr.abi |
    sed -n 's/^Functions changes summary: .* \([0-9]*\) Added function.*/\1/p')
echo "$planted planted changes; $(grep -c '<elf-symbol ' libsifr.abi) calls, none broken, ${added:-0} not stored yet"
