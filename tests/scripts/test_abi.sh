# not under sanitizers
# The binary interface: what is stored of it (tests/abi/interface.txt) is what the headers say and the
# library exports, but for additions. scripts/abi.py finds each kind of break, in a tree of its own.
fail() { cat out; echo "$1" >&2; exit 1; }
"$SOURCE/scripts/abi.py" check "$BUILD/libsifr.so" >out 2>&1 || fail "the interface has changed"
cat out
[ "$(grep -c '^function' "$SOURCE/tests/abi/interface.txt")" -gt 150 ] || fail "too few calls are stored"

export TREE=$PWD/tree
mkdir -p tree/include/sifr tree/tests/abi
echo 'project(sifr VERSION 1.2.3 LANGUAGES C)' >tree/CMakeLists.txt
echo '## 1.2.3, 2026-01-31' >tree/CHANGELOG.md
cat >header <<'H'
#include <stddef.h>
#include <stdint.h>
typedef enum sifr_kind { SIFR_A, SIFR_B } sifr_kind;
typedef struct sifr_handle sifr_handle;
typedef struct sifr_options {
    size_t size;
    int32_t first;
    double second;
    char third;
} sifr_options;
typedef struct sifr_plain {
    float x[3];
} sifr_plain;
typedef int sifr_call(void *user, sifr_kind kind);
void sifr_open(sifr_handle **out, const sifr_options *options, sifr_call *call);
void sifr_take(sifr_plain plain);
H
header=tree/include/sifr/a.h
abi() { "$SOURCE/scripts/abi.py" "$@" >out 2>&1; }
cp header $header
abi list || fail "a small header is not read"
cp out tree/tests/abi/interface.txt
for line in 'struct sifr_options: 32 bytes' '  16 double second' '  0 float[3] x' 'constant SIFR_B: 1' \
    'type sifr_call: int (void *, sifr_kind)' 'function sifr_take: void (sifr_plain)'; do
    grep -qxF -e "$line" out || fail "no line '$line'"
done
changed() { # SED
    sed "$1" header >$header
    ! cmp -s header $header || fail "'$1' changes nothing"
}
count=0
breaks() { # SED TEXT
    changed "$1"
    ! abi check || fail "no break: $1"
    grep -q "$2" out || fail "no word of: $2"
    count=$((count + 1))
}
breaks '/sifr_take/d' '^function sifr_take: is gone'
breaks 's/sifr_take(sifr_plain/sifr_take(const void */' '^function sifr_take: has changed'
breaks 's/int32_t first/int64_t first/' 'is 8 int64_t first'
breaks 's/double second;/double new, second;/' 'was 16 double second'
breaks 's/double second;/int32_t other; double second;/' '^struct sifr_options: has changed'
breaks 's/char third;/char third, in_padding;/' 'is 25 char in_padding'
breaks 's/float x\[3\];/float x[3], y;/' '^struct sifr_plain: has changed'
breaks 's/SIFR_A, SIFR_B/SIFR_NEW, SIFR_A, SIFR_B/' '^constant SIFR_B: has changed'
breaks 's/void \*user, sifr_kind/void *user, long/' '^type sifr_call: has changed'
goes() { # SED TEXT
    changed "$1"
    abi check || fail "a break: $1"
    grep -q "$2" out && grep -q ' 1 additions, 0 breaks$' out || fail "no word of: $2"
    count=$((count + 1))
}
goes 's/char third;/char third; double fourth;/' '^struct sifr_options: has grown at its end'
abi suppressions && grep -qx '  name = sifr_options' out || fail "no suppression for abidiff"
goes 's/SIFR_B }/SIFR_B, SIFR_C }/' '^constant SIFR_C: is new'
goes '$s/$/ int sifr_new(void);/' '^function sifr_new: is new'
abi suppressions && [ ! -s out ] || fail "a suppression where nothing has grown"

# What a library does not export, another soname, and what is stored of a released version.
cp header $header
echo 'void sifr_open(void); void sifr_open(void) {}' | gcc -shared -fPIC -o small.so -x c -
! abi check small.so && grep -q '^function sifr_take: small.so does not export it' out || fail "not exported"
! abi renew && grep -q '^The binary interface' out || fail "renewed without a library"
changed '/sifr_take/d'
! abi renew small.so && grep -q 'libsifr.so.1.2 is released: raise the minor version' out || fail "stored"
sed -i 's/1\.2\.3/1.3.0/' tree/CMakeLists.txt
! abi check && grep -q 'stored interface is of libsifr.so.1.2, this tree of libsifr.so.1.3' out || fail "soname"
echo "$count changes"
