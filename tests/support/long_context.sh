# Sourced by tests of the longest sequence that context ranks train: a model, a limit that one rank
# reaches near 8,000 tokens, and what the planner says of it. After ranks.sh and tiny_model.
limit=128MiB
cat >long.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 280,
 "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 8, "num_attention_heads": 4,
 "num_key_value_heads": 4, "max_position_embeddings": 131072, "tie_word_embeddings": false}
J
"$SIFR" init --config long.json --tokenizer tok --output long --seed 3 >/dev/null
# long_settings SIZE: ds.json
long_settings() {
    cat >ds.json <<J
{"train_batch_size": 1, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "sifr": {"seq_length": 1024, "recompute": "unit", "max_steps": 1,
          "context_parallel": {"size": $1}}}
J
}
# longest SIZE: prints it. What the program itself takes depends on the length, so it is asked again
# from there.
longest() {
    local again length=8192
    long_settings "$1"
    for again in 1 2; do
        "$SIFR" plan --config ds.json --model long --world-size "$1" --threads 1 \
            --device-memory $limit --seq-length $length --json >out 2>err ||
            fail "$1 ranks: $(cat err)"
        length=$(awk '/"largest_seq_length":/ { gsub(",", "", $2); print $2 }' out)
    done
    echo "$length"
}
# at_least WHAT NUMBER FACTOR OF
at_least() {
    awk -v n="$2" -v f="$3" -v of="$4" 'BEGIN { exit !(n >= f * of) }' ||
        fail "$1: $2 tokens are not $3 times $4"
}
