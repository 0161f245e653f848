# label: short
# Adapters of classifiers: their heads, which the base lacks, are trained and saved as PEFT has them;
# the same loss of the run's folder, its checkpoint, the adapter beside its base, alone, and merged;
# and what PEFT leaves out is refused. With magnitudes, too.
# timeout: 200
. "$SOURCE/tests/support/expect.sh"
awk 'BEGIN { for (i = 0; i < 400; i++) print "good bad food was were day the a very red big one two" }' >text
"$SIFR" tokenizer train --vocab-size 280 --data text --output tok >/dev/null 2>&1
seq 0 23 | awk '{ split("good bad very", w, " "); print "{\"text\": \"the food was " w[$1 % 3 + 1] \
    " " $1 "\", \"label\": \"" w[$1 % 3 + 1] "\"}" }' >rows.jsonl
size='"vocab_size": 280, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0'
cat >llama.json <<J
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], $size}
J
cat >bert.json <<J
{"model_type": "bert", "architectures": ["BertForMaskedLM"], $size}
J
cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}},
 "sifr": {"seq_length": 24, "max_steps": 4, "save_steps": 2,
          "lora": {"r": 4, "target_modules": "all-linear"}}}
J
train() { # MODEL OUT OPTION…
    expect 0 "$SIFR" train --config ds.json --model "$1" --data rows.jsonl --output "$2" \
        --task sequence_classification --threads 1 "${@:3}"
}
loss() { # DATA OPTION…
    expect 0 "$SIFR" eval --data "$1" --seq-length 24 --threads 1 --precision fp32 "${@:2}"
    if grep -q 'made from the seed' err; then fail "$*: $(cat err)"; fi
    grep -o 'loss [0-9.]*' out
}
saved() { grep -ao '"base_model.model[^"]*"' "$1/adapter_model.safetensors" | grep -v lora_ | tr '\n' ' '; }

for model in llama bert; do
    "$SIFR" init --config $model.json --tokenizer tok --output $model --seed 3 >/dev/null
    train $model one
    want=$(loss rows.jsonl --model one/checkpoint-4)
    mkdir alone
    cp one/adapter_config.json one/adapter_model.safetensors alone
    expect 0 "$SIFR" merge $model one merged
    expect 0 "$SIFR" export one/checkpoint-4 exported
    cmp exported/adapter_model.safetensors one/adapter_model.safetensors
    for how in "one" "$model --adapter one" merged; do
        [ "$(loss rows.jsonl --model $how)" = "$want" ] || fail "$model: $how: another loss than $want"
    done
    # Without config.json, as PEFT leaves a folder, labels are numbers: here in the same order.
    sed 's/"label": "bad"/"label": 0/; s/"label": "good"/"label": 1/; s/"label": "very"/"label": 2/' \
        rows.jsonl >numbers.jsonl
    got=$(loss numbers.jsonl --model alone)
    [ "$got" = "$want" ] || fail "$model: alone: $got, not $want"
    train $model cut --max-steps 2 --ranks 2
    train $model cut --resume --ranks 4
    cmp one/adapter_model.safetensors cut/adapter_model.safetensors || fail "$model: resumed"
    expect 0 "$SIFR" train --model $model --adapter alone --data numbers.jsonl --output on \
        --seq-length 24 --max-steps 1 --threads 1
    [ $model = bert ] || { rm -r one alone merged exported cut on; continue; }
    # The pooler is no part of a masked model. PEFT's adapters lack it unless they name it.
    [ "$(saved one)" = '"base_model.model.bert.pooler.dense.bias" "base_model.model.bert.pooler.dense.weight" "base_model.model.classifier.bias" "base_model.model.classifier.weight" ' ] ||
        fail "saved: $(saved one)"
    sed -i '/"bert.pooler.dense"/d; s/"score",/"score"/' alone/adapter_config.json
    expect 1 "$SIFR" eval --model bert --adapter alone --data numbers.jsonl --seq-length 24
    grep -q 'bert.pooler.dense.weight is neither in the adapter nor in the base.s folder' err ||
        fail "no pooler: $(cat err)"
done

# DoRA's magnitudes, also of products of DeBERTa's relative positions, which are rows of a weight.
cat >deberta.json <<J
{"model_type": "deberta-v2", "architectures": ["DebertaV2ForMaskedLM"], $size,
 "relative_attention": true, "position_buckets": 8, "norm_rel_ebd": "layer_norm",
 "share_att_key": true, "pos_att_type": ["p2c", "c2p"], "position_biased_input": false,
 "type_vocab_size": 0}
J
"$SIFR" init --config deberta.json --tokenizer tok --output deberta --seed 3 >/dev/null
sed -i 's/"r": 4,/"r": 4, "use_dora": true,/' ds.json
train deberta dora
want=$(loss rows.jsonl --model dora)
expect 0 "$SIFR" merge deberta dora dora-merged
[ "$(loss rows.jsonl --model dora-merged)" = "$want" ] || fail "DoRA: another loss than $want"

# Modules to save by endings of their names, within parts of them, too; they get no adapters.
"$SIFR" init --config llama.json --tokenizer tok --output untied --seed 3 >/dev/null
cat >ds.json <<J
{"train_batch_size": 2, "sifr": {"seq_length": 24, "max_steps": 1,
 "lora": {"r": 2, "target_modules": "all-linear", "modules_to_save": ["norm", "0.mlp", "v_proj"]}}}
J
expect 0 "$SIFR" train --config ds.json --model untied --data text --output norms --threads 1
[ "$(saved norms | wc -w)" = $((5 + 3 + 2)) ] || fail "saved: $(saved norms)"
grep -q 'adapters of 9 modules' out || fail "adapted: $(cat out)"
expect 0 "$SIFR" merge untied norms norms-merged
