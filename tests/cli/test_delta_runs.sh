# Layers of linear attention (the gated delta rule) through the program: prompts that share a
# beginning, one after the other in one slot and several at a time, give the texts that each gives
# alone; adapters train and merge; a target that is no product is refused, and so is GGUF of heads
# of two sizes; released sizes are planned by name.
. "$SOURCE/tests/support/expect.sh"
cat >config.json <<'J'
{"model_type": "qwen3_5_text", "architectures": ["Qwen3_5ForCausalLM"], "vocab_size": 320,
 "hidden_size": 24, "intermediate_size": 30, "num_hidden_layers": 3, "num_attention_heads": 2,
 "num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": 96,
 "layer_types": ["linear_attention", "full_attention", "linear_attention"],
 "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 6,
 "linear_value_head_dim": 10, "initializer_range": 0.5}
J
expect 0 "$SIFR" init --config config.json --tokenizer "$SOURCE/tests/golden/models/gpt2" --output m

# --- generation ---
generate() { # PROMPTS OUTPUT OPTION...
    expect 0 "$SIFR" generate --model m --prompts "$1" --max-new-tokens 12 --threads 1 --json "${@:3}"
    sed 's/,"seconds.*//' out >>"$2"
}
# The last one is longer than the text that it follows, and leaves it within the prompt.
printf '%s\n' 'The sea is' 'The sea was' 'The sea was' 'The' 'The sea was blue, and the sky above' \
    'The sea was blue, and the sky above it was wide and grey as far as one could see' >prompts
generate prompts together
generate prompts three --batch-size 3
while read -r line; do
    echo "$line" >one
    generate one alone
done <prompts
[ "$(sort -u alone | wc -l)" = 5 ] || fail "the texts do not depend on the prompts"
cmp alone together || fail "a prompt that begins as the one before has another text"
cmp alone three || fail "three texts at a time are others"
# Samples of a prompt begin with a copy of its state.
generate one samples --samples 3 --temperature 2
generate one at-once --samples 3 --temperature 2 --batch-size 3
cmp samples at-once && [ "$(sort -u samples | wc -l)" = 3 ] || fail "$(cat samples at-once)"

# --- adapters ---
. "$SOURCE/tests/support/small_store.sh"
adapters() { # TARGETS
    cat >lora.json <<J
{"train_batch_size": 2, "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}},
 "sifr": {"seq_length": 24, "max_steps": 2, "logging_steps": 1,
          "lora": {"r": 2, "target_modules": $1}}}
J
}
adapters '["in_proj_qkv", "in_proj_a", "out_proj", "gate_proj", "q_proj"]'
expect 0 "$SIFR" train --config lora.json --data store --model m --threads 1 --output tuned
grep -q '"in_proj_a"' tuned/adapter_config.json || fail "the adapter's config lacks a target"
expect 0 "$SIFR" merge m tuned merged
expect 0 "$SIFR" eval --model merged --data store --seq-length 24 --max-windows 2 --json
merged=$(sed -n 's/.*"loss": *\([0-9.]*\).*/\1/p' out)
expect 0 "$SIFR" eval --model m --adapter tuned --data store --seq-length 24 --max-windows 2 --json
beside=$(sed -n 's/.*"loss": *\([0-9.]*\).*/\1/p' out)
[ "${merged:0:6}" = "${beside:0:6}" ] && [ "$merged" ] || fail "merged: $merged, beside: $beside"
adapters '["conv1d"]'
expect 2 "$SIFR" train --config lora.json --data store --model m --threads 1 --output other
grep -q 'conv1d' err || fail "not said: $(cat err)"
expect 2 "$SIFR" export m model.gguf --format gguf
grep -q '"linear_value_head_dim" is 10; llama.cpp' err || fail "not said: $(cat err)"

# --- released sizes ---
cat >plan.json <<'J'
{"train_batch_size": 1, "bf16": {"enabled": true}, "sifr": {"seq_length": 2048}}
J
expect 0 "$SIFR" plan --config plan.json --model Qwen/Qwen3.5-0.8B
grep -q '752' out || fail "not its parameters: $(cat out)"
