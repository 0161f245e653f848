# A folder whose weights are pytorch_model.bin: shown, evaluated and exported like the safetensors
# folder of the same model.
. "$SOURCE/tests/support/expect.sh"
same=$SOURCE/tests/golden/formats/sharded
golden=$SOURCE/tests/golden/torch

# le BYTES NUMBER…: little-endian
le() {
    local bytes=$1 n i
    shift
    for n in "$@"; do
        for ((i = 0; i < bytes; i++)); do printf "\\x$(printf %02x $((n >> 8 * i & 255)))"; done
    done
}
# a store of one document of 64 tokens
le 2 $(for i in $(seq 0 63); do echo $((i * 37 % 64)); done) >tokens.bin
{ printf 'MMIDIDX\0\0'; le 8 1; le 1 8; le 8 1 2; le 4 64; le 8 0; le 8 0 1; } >tokens.idx
loss() {
    expect 0 "$SIFR" eval --model "$1" --data tokens --seq-length 15 --json
    grep '"loss"' out
}

tensors() { sed -n '/^weights/,$p' out | sed 1d | grep -v '^  lm_head'; }
expect 0 "$SIFR" inspect "$same"
tensors >wanted
expect 0 "$SIFR" inspect "$golden/model"
tensors >shown
cmp wanted shown || fail "other tensors"
[ ! -s err ] || fail "warned"
[ "$(loss "$golden/model")" = "$(loss "$same")" ] || fail "another loss"
expect 0 "$SIFR" export "$golden/model" out-model
[ -s out-model/model.safetensors ] || fail "no safetensors"
[ "$(loss out-model)" = "$(loss "$same")" ] || fail "another loss after export"
[ ! -e out-model/pytorch_model.bin ] || fail "the .bin went along"
expect 0 "$SIFR" inspect "$golden/shards"
grep -q '^weights: 8 tensors, .* in 2 files$' out || fail "shards"
