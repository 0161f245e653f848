# Frozen weights, as a user trains with them: their bytes are those of the model it began with, also
# after a resumed run and in bf16; a checkpoint has no moments of units that are frozen as a whole.
# timeout: 300, in test_asan
. "$SOURCE/tests/support/expect.sh"
# tensor FILE NAME: hash of a tensor's bytes in a safetensors file
tensor() {
    local size place
    size=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    place=$(tail -c +9 "$1" | head -c "$size" | grep -o "\"$2\": *{[^}]*}" |
        grep -o '\[[0-9]*, *[0-9]*\]}' | tr -d '[]} ') || fail "no $2 in $1"
    tail -c +$((9 + size + ${place%,*})) "$1" | head -c $((${place#*,} - ${place%,*})) | sha256sum
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
tr -d ' \n' <$manifest | tr '{' '\n' | grep '"exp_avg' >moments
! grep -q 'model.layers.0.' moments || fail "moments of a frozen unit"
grep -q 'model.layers.1.' moments || fail "no moments at all"

# What was frozen belongs to the run; patterns that match nothing, or everything, are refused.
expect 2 train --output out-resumed --bf16 --resume --freeze 'model.norm.weight'
grep -q 'frozen weights' err || fail "another freeze: $(cat err)"
expect 2 train --output none --freeze 'layers.0.*'
grep -q 'no weight.s name matches "layers.0.\*"' err || fail "$(cat err)"
expect 2 train --output none --freeze '*'
grep -q 'nothing is left to train' err || fail "$(cat err)"
[ ! -e none ] || fail "an output of a refused run"
expect 2 "$SIFR" plan --config ds.json --model model --freeze nothing
