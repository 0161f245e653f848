# label: full
# Packed rows on real ranks: the same weights and figures at 1, 2 and 4 ranks and at every ZeRO
# stage, and through a checkpoint of other ranks.
# timeout: 300, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/ranks.sh"
tiny_model
# Rows of 4 to some 40 tokens.
awk 'BEGIN {
    split("the cat sat on a mat", w, " ")
    for (i = 0; i < 90; i++) {
        text = ""
        for (j = 0; j <= i * 7 % 19; j++) text = text w[(i + j) % 6 + 1] " "
        printf "{\"prompt\": \"%s\", \"completion\": \"%s dog\"}\n", text, w[i % 6 + 1]
    }
}' >rows.jsonl
run() { # RANKS STAGE OUTPUT OPTION…
    local ranks=$1 stage=$2 output=$3
    shift 3
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "zero_optimization": {"stage": $stage},
 "sifr": {"packing": true, "seq_length": 64, "max_steps": 6, "eval_steps": 3, "save_steps": 3,
          "validation_split": 0.2, "threads": 1}}
J
    $launcher -n "$ranks" "$SIFR" train --config ds.json --model $model --data rows.jsonl \
        --output "$output" "$@" >out 2>err || fail "$ranks ranks at stage $stage"
}
model=model
run 1 0 one
grep -qE 'data: packed 72 rows into [0-9]+ sequences of 64 tokens, 9[0-9]\.[0-9] % filled' out ||
    fail "no counts"
grep -q 'eval_data: packed 18 rows' out || fail "no counts of what is held out"
for ranks in 2 4; do
    for stage in 0 1 2 3; do
        run $ranks $stage "r$ranks-$stage"
        same "r$ranks-$stage" one
    done
done
cp -r r4-3 cut
rm -rf cut/checkpoint-6 cut/model.safetensors
echo checkpoint-3 >cut/latest
run 2 1 cut --resume
same cut one

# Learned positions, and dropout.
cat >gpt2.json <<'J'
{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 280, "n_embd": 64,
 "n_layer": 2, "n_head": 4, "n_positions": 64}
J
"$SIFR" init --config gpt2.json --tokenizer tok --output gpt2 --seed 3 >/dev/null
model=gpt2
run 1 0 learned
run 4 3 learned-4
same learned-4 learned
