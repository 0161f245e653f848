# `sifr inspect`: every kind of path that it knows, damaged ones, and what it does not know.
fail() { echo "$1" >&2; cat out err >&2; exit 1; }
# expect CODE ARGUMENT…: runs sifr inspect, with its output in `out` and its errors in `err`
expect() {
    local want=$1 code=0
    shift
    "$SIFR" inspect "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] || fail "inspect $*: exit code $code, not $want"
    [ "$want" = 0 ] || [ "$(wc -l <err)" = 1 ] || fail "inspect $*: an error is one line"
}
says() { grep -qE -- "$1" out || fail "no line like: $1"; }
complains() { grep -qE -- "$1" err || fail "no error like: $1"; }

# safetensors FILE HEADER BYTES: writes the file, its tensors all zero
safetensors() {
    { printf "\\x$(printf %x ${#2})\0\0\0\0\0\0\0%s" "$2"; head -c "$3" /dev/zero; } >"$1"
}

mkdir model
echo '{"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 512}' \
    >model/config.json
safetensors model/model.safetensors '{"__metadata__":{"format":"pt"},"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},"b":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}' 16
expect 0 model
says '^weights: 2 tensors, 7 elements, 16 B in 1 file$'
says '^  w  BF16  \[2, 3\]$'
says '^  num_key_value_heads +4$'
says '^tokenizer: none$'
expect 0 model --json
says '"kind": "model"'
says '"parameters": 7'
says '"head_dim": 16'
expect 0 model/config.json
says '^  hidden_size +64$'
expect 0 model/model.safetensors
says 'a safetensors file'

# Layers that are not all alike, and what is beside a text model.
golden=$SOURCE/tests/golden
expect 0 "$golden/gguf/lfm2"
says '^  layers_of_type +\{"conv":2,"full_attention":1\}$'
says '^  conv_L_cache +3$'
! grep -q '^trained: ' out || fail "a text model has a tower"
expect 0 "$golden/multimodal/models/qwen3_5"
says '^  text_model +qwen3_5_text$'
says '^  layers_of_type +\{"linear_attention":1,"full_attention":1\}$'
says '^  linear_num_key_heads +1$'
says '^  linear_num_value_heads +2$'
says '^  linear_key_head_dim +4$'
says '^  linear_value_head_dim +6$'
says '^  linear_conv_kernel_dim +4$'
says '^trained: the text model alone, as qwen3_5_text; 21 tensors beside it, 7.75 KiB, are carried along'
beside=$(grep -c '^  model\.visual\.' out)
[ "$beside" = 21 ] || fail "$beside tensors of the tower are listed"
expect 0 "$golden/multimodal/models/qwen3_5" --json
says '"carried": \{'
expect 0 model
! grep -q layers_of_type out || fail "layers that are alike are counted"

# A family that cannot be trained can be looked at.
mkdir other
echo '{"model_type": "some_rnn"}' >other/config.json
cp model/model.safetensors other/
expect 0 other
says '^config: cannot be used for training: .*supported are gpt2, llama'
says '^weights: 2 tensors'

# Shards, found through the index.
mkdir shards
cp model/model.safetensors shards/model-00001-of-00001.safetensors
echo '{"weight_map": {"w": "model-00001-of-00001.safetensors", "b": "model-00001-of-00001.safetensors"}}' \
    >shards/model.safetensors.index.json
expect 0 shards
says '^weights: 2 tensors'
expect 0 shards/model.safetensors.index.json
says '^weights: 2 tensors'

# Damage.
head -c 100 model/model.safetensors >cut.safetensors
expect 1 cut.safetensors
complains 'cut.safetensors: a header of [0-9]+ bytes in a file of 100: cut short'
rm shards/model-00001-of-00001.safetensors
expect 1 shards
complains 'missing'
echo '{' >model/config.json
expect 0 model
says '^config: cannot be used for training: .*not valid JSON'
expect 2 model/config.json

# A checkpoint: its manifest, and whether its files are there.
mkdir checkpoint-40
echo 12345 >checkpoint-40/a
echo 123 >checkpoint-40/c
echo '{"format": "sifr checkpoint", "version": 1, "step": 40, "files": [{"name": "a", "bytes": 6},
    {"name": "b", "bytes": 7}, {"name": "c", "bytes": 7}, {"name": "../model", "bytes": 7}]}' \
    >checkpoint-40/manifest.json
expect 0 checkpoint-40
says '^  step +40$'
says '^  a .* there$'
says '^  b .* missing$'
says '^  c .* of another size$'
says '^  \.\./model .* unnamed$'

# What it is not.
expect 2
expect 2 model other
expect 1 absent
complains 'no such file'
mkdir bare
expect 2 bare
echo text >text.txt
expect 2 text.txt
complains 'cannot be inspected: it is not a model folder'
echo '{}' >some.json
expect 2 some.json
mkfifo pipe.safetensors
expect 1 pipe.safetensors
complains 'a device or pipe'

# A mapped file that another program cuts short raises SIGBUS: one line, exit code 1. The signal is
# sent by hand, while the output waits for its reader.
safetensors_header=$(awk 'BEGIN { for (i = 0; i < 5000; i++)
    printf "%s\"layer.%d.weight\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
        i ? "," : "{", i; print "}" }')
{
    size=$(printf %08x ${#safetensors_header})
    printf "\\x${size:6:2}\\x${size:4:2}\\x${size:2:2}\\x${size:0:2}\0\0\0\0"
    printf %s "$safetensors_header"
} >many.safetensors
mkfifo output
"$SIFR" inspect many.safetensors >output 2>err &
pid=$!
exec 3<output
head -c 1 <&3 >out
kill -BUS $pid
code=0
wait $pid || code=$?
exec 3<&-
[ $code = 1 ] || fail "SIGBUS: exit code $code"
[ "$(wc -l <err)" = 1 ] || fail "SIGBUS: an error is one line"
complains 'cut short by another program'
