# Layers of short convolutions through the program: prompts that share a beginning, one after the
# other in one slot and several at a time, give the texts that each gives alone; adapters train and
# merge; a target that names a convolution is refused; biases of convolutions are not for GGUF.
. "$SOURCE/tests/support/expect.sh"
cat >config.json <<'J'
{"model_type": "lfm2", "architectures": ["Lfm2ForCausalLM"], "vocab_size": 320, "hidden_size": 24,
 "intermediate_size": 30, "num_hidden_layers": 3, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 96, "block_multiple_of": 4,
 "layer_types": ["conv", "full_attention", "conv"], "conv_L_cache": 4, "initializer_range": 0.5}
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

# --- adapters ---
. "$SOURCE/tests/support/small_store.sh"
adapters() { # TARGETS
    cat >lora.json <<J
{"train_batch_size": 2, "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}},
 "sifr": {"seq_length": 24, "max_steps": 2, "logging_steps": 1,
          "lora": {"r": 2, "target_modules": $1}}}
J
}
adapters '["in_proj", "out_proj", "w1", "q_proj"]'
expect 0 "$SIFR" train --config lora.json --data store --model m --threads 1 --output tuned
grep -q '"in_proj"' tuned/adapter_config.json || fail "the adapter's config lacks a target"
expect 0 "$SIFR" merge m tuned merged
expect 0 "$SIFR" eval --model merged --data store --seq-length 24 --max-windows 2 --json
merged=$(sed -n 's/.*"loss": *\([0-9.]*\).*/\1/p' out)
expect 0 "$SIFR" eval --model m --adapter tuned --data store --seq-length 24 --max-windows 2 --json
beside=$(sed -n 's/.*"loss": *\([0-9.]*\).*/\1/p' out)
[ "${merged:0:6}" = "${beside:0:6}" ] && [ "$merged" ] || fail "merged: $merged, beside: $beside"
adapters '["conv"]'
expect 2 "$SIFR" train --config lora.json --data store --model m --threads 1 --output other
grep -q 'conv' err || fail "not said: $(cat err)"
expect 0 "$SIFR" export m model.gguf --format gguf
sed 's/"conv_L_cache"/"conv_bias": true, &/' config.json >biased.json
expect 0 "$SIFR" init --config biased.json --tokenizer m --output biased
expect 2 "$SIFR" export biased biased.gguf --format gguf
grep -q '"conv_bias": llama.cpp' err || fail "not said: $(cat err)"

# --- context ranks: the first one of a sequence reads no rows before it, and waits for none ---
cat >contexts.json <<J
{"train_batch_size": 24, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}},
 "zero_optimization": {"stage": 3},
 "sifr": {"seq_length": 24, "max_steps": 1, "context_parallel": {"size": 2}}}
J
expect 0 "$SIFR" train --config contexts.json --data store --model m --threads 1 --ranks 2 \
    --output ahead
sed -i 's/"stage": 3/&, "overlap_comm": false/' contexts.json
expect 0 "$SIFR" train --config contexts.json --data store --model m --threads 1 --ranks 2 \
    --output waits
cmp ahead/model.safetensors waits/model.safetensors || fail "overlapped transfers change weights"
