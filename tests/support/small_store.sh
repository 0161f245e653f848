# Sourced by tests that train tiny decoders; needs `fail`.
# A token store in Megatron's form: one document of 12,000 ids of 16 bits, below 53 or $STORE_WORDS.
bytes() { # WIDTH NUMBER: little endian
    local i
    for ((i = 0; i < $1; i++)); do printf "\\$(printf %03o $(($2 >> (8 * i) & 255)))"; done
}
awk -v words="${STORE_WORDS:-53}" 'BEGIN {
    s = 7
    for (i = 0; i < 12000; i++) {
        s = (s * 1103515245 + 12345) % 2147483648
        k = (s / 65536) % 3 < 1 ? int(s / 65536) % words : (k * 3 + 1) % words
        printf "\\%03o\\000", k
    }
}' >octal
printf "$(cat octal)" >store.bin
{
    printf 'MMIDIDX\000\000'
    bytes 8 1; bytes 1 8; bytes 8 1; bytes 8 2 # version, uint16, sequences, documents
    bytes 4 12000; bytes 8 0; bytes 8 0; bytes 8 1
} >store.idx
[ "$(wc -c <store.bin)" = 24000 ] || fail "the store has $(wc -c <store.bin) bytes"
