# label: soak
# timeout: 900, not under sanitizers
# What a long run keeps of its steps: the memory of rank 0 grows by at most 1 MiB in 20,000 steps,
# of one rank and of two, and in 40,000; trainer_state.json stays as small, metrics.jsonl has all.
# The program's own samples, in metrics.csv, are taken early and late.
. "$SOURCE/tests/support/ranks.sh"
tiny_model
cat >least.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 280,
 "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1,
 "num_key_value_heads": 1, "max_position_embeddings": 16, "tie_word_embeddings": true}
J
"$SIFR" init --config least.json --tokenizer tok --output least >/dev/null
at() { awk -F, -v step="$2" '$1 == step { print $9 }' "$1/metrics.csv"; } # OUTPUT STEP: bytes
# keeps RANKS STEPS
keeps() {
    local run="run-$1-$2" late=$2
    "$SIFR" train --model least --data text --output "$run" --threads 1 --ranks "$1" \
        --max-steps "$2" --seq-length 8 --per-device-train-batch-size 1 >out 2>err ||
        fail "$1 ranks: exit code $?"
    early=$(at "$run" 200)
    late=$(at "$run" "$2")
    echo "$1 ranks: $early bytes at step 200, $late at step $2: $((late - early)) more," \
        "trainer_state.json $(stat -c %s "$run/trainer_state.json")"
    [ $((late - early)) -le 1048576 ] || fail "$1 ranks: more than 1 MiB in $2 steps"
    [ "$(wc -l <"$run/metrics.jsonl")" = "$2" ] || fail "$1 ranks: metrics.jsonl has not all steps"
    entries=$(grep -c '"step":' "$run/trainer_state.json")
    [ "$entries" -le 20001 ] || fail "$1 ranks: trainer_state.json has $entries entries"
    [ "$(stat -c %s "$run/trainer_state.json")" -le 4194304 ] || fail "$1 ranks: trainer_state.json"
}
keeps 1 20200
keeps 1 40400
keeps 2 20200
