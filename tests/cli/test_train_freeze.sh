# Frozen weights, as a user trains with them: their bytes are those of the model it began with, also
# after a resumed run and in bf16. A checkpoint holds none of them: it names the folder that they
# came from, and whoever reads it is told if that folder is gone or has changed.
# timeout: 300, in test_asan
. "$SOURCE/tests/support/expect.sh"
# find FILE NAME: `from` and `to`, a tensor's place in a safetensors file
find() {
    local size place
    size=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    place=$(tail -c +9 "$1" | head -c "$size" | grep -o "\"$2\": *{[^}]*}" |
        grep -o '\[[0-9]*, *[0-9]*\]}' | tr -d '[]} ') || fail "no $2 in $1"
    from=$((8 + size + ${place%,*})) to=$((8 + size + ${place#*,}))
}
# tensor FILE NAME: hash of a tensor's bytes
tensor() {
    local from to
    find "$1" "$2"
    tail -c +$((from + 1)) "$1" | head -c $((to - from)) | sha256sum
}
seq 1 4000 | awk '{ print "line", $1 % 37, "of", $1 % 11, "things." }' >text
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >/dev/null
cat >llama.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
 "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": false}
J
"$SIFR" init --config llama.json --tokenizer tok --output model --seed 3 >/dev/null
cat >ds.json <<'J'
{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.1}},
 "sifr": {"seq_length": 64, "max_steps": 6, "save_steps": 3,
          "freeze": ["model.embed_tokens.*", "model.layers.0.*", "*.input_layernorm.*"]}}
J
frozen="model.embed_tokens.weight model.layers.0.mlp.up_proj.weight
    model.layers.0.input_layernorm.weight model.layers.1.input_layernorm.weight"
trained="model.layers.1.mlp.up_proj.weight model.layers.1.post_attention_layernorm.weight
    model.norm.weight lm_head.weight"
train() { "$SIFR" train --config ds.json --data text --threads 2 --model model "$@"; }

for extra in "" --bf16; do
    rm -rf out-*
    expect 0 train --output out-straight $extra
    grep -q 'trains 6[0-9],[0-9]* of 1[0-9]*,[0-9]* parameters' out err || fail "not said: $(cat out)"
    for name in $frozen; do
        [ "$(tensor out-straight/model.safetensors $name)" = \
            "$(tensor model/model.safetensors $name)" ] || fail "$extra: $name changed"
    done
    for name in $trained; do
        [ "$(tensor out-straight/model.safetensors $name)" != \
            "$(tensor model/model.safetensors $name)" ] || fail "$extra: $name did not change"
    done
    expect 0 train --output out-resumed $extra --max-steps 3
    expect 0 train --output out-resumed $extra --resume
    cmp out-straight/model.safetensors out-resumed/model.safetensors
done
manifest=out-straight/checkpoint-6/manifest.json
tr -d ' \n' <$manifest | tr '{' '\n' | grep '"part":' >parts
! grep -q 'model.layers.0.\|input_layernorm\|embed_tokens' parts || fail "state of frozen weights"
grep -q 'model.layers.1.' parts || fail "no state at all"
grep -q '"path": *"'"$PWD"'/model"' $manifest || fail "no base in $manifest"

# Where a run ended is what an export writes, byte for byte; and evaluation reads it.
expect 0 "$SIFR" export out-straight/checkpoint-6 exported
cmp exported/model.safetensors out-straight/model.safetensors
expect 0 "$SIFR" eval --model out-straight/checkpoint-6 --data text --seq-length 64
cp out step-6
expect 0 "$SIFR" eval --model exported --data text --seq-length 64
cmp <(grep -o 'loss [0-9.]*' out) <(grep -o 'loss [0-9.]*' step-6)

# The base is gone: said by name; the run itself is told where it is now, and goes on.
mv model moved
expect 1 "$SIFR" export out-straight/checkpoint-6 again
grep -q "checkpoint-6: its frozen weights are in $PWD/model, which is not there" err || fail "$(cat err)"
[ ! -e again ] || fail "an export without its base"
expect 1 train --output out-resumed --bf16 --resume --max-steps 8
grep -q 'model: no such file or folder; give a model.s folder' err || fail "$(cat err)"
rm -rf out-moved
train() { "$SIFR" train --config ds.json --data text --threads 2 --model moved "$@"; }
expect 0 train --output out-moved --bf16 --max-steps 3
expect 0 train --output out-resumed --bf16 --resume --max-steps 8
[ "$(tensor out-resumed/model.safetensors model.embed_tokens.weight)" = \
    "$(tensor moved/model.safetensors model.embed_tokens.weight)" ] || fail "frozen weights changed"

# The base has other values: nothing is made of it.
cp -r moved changed
find changed/model.safetensors model.embed_tokens.weight
printf x | dd of=changed/model.safetensors bs=1 seek=$((from + 40)) conv=notrunc status=none
cp -r changed model
expect 1 "$SIFR" export out-straight/checkpoint-6 again
grep -q "has other values in $PWD/model than when the checkpoint was made" err || fail "$(cat err)"
train() { "$SIFR" train --config ds.json --data text --threads 2 --model changed "$@"; }
expect 2 train --output out-moved --bf16 --resume
grep -q "made with other values of the frozen weight .* than $PWD/changed has" err || fail "$(cat err)"
rm -r model
mv moved model
train() { "$SIFR" train --config ds.json --data text --threads 2 --model model "$@"; }

# What is frozen costs its parameters alone: half of the model is.
expect 0 "$SIFR" plan --config ds.json --model model --json
cp out frozen.json
expect 0 "$SIFR" plan --config ds.json --model model --json --freeze 'model.norm.weight'
peak() { tr ',{' '\n\n' <$1 | sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p" | head -n 1; }
less=$(peak frozen.json moments) all=$(peak out moments)
[ $((10 * less)) -lt $((6 * all)) ] || fail "moments: $less of $all bytes"
less=$(peak frozen.json checkpoint_bytes) all=$(peak out checkpoint_bytes)
[ $((10 * less)) -lt $((6 * all)) ] || fail "a checkpoint of $less bytes, $all where all is trained"

# What was frozen belongs to the run; patterns that match nothing, or everything, are refused.
expect 2 train --output out-resumed --bf16 --resume --freeze 'model.norm.weight'
grep -q 'frozen weights' err || fail "another freeze: $(cat err)"
expect 2 train --output none --freeze 'layers.0.*'
grep -q 'no weight.s name matches "layers.0.\*"' err || fail "$(cat err)"
expect 2 train --output none --freeze '*'
grep -q 'nothing is left to train' err || fail "$(cat err)"
[ ! -e none ] || fail "an output of a refused run"
expect 2 "$SIFR" plan --config ds.json --model model --freeze nothing
