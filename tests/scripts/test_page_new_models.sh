# label: short
# docs/tune-new-models.md, with a model of two small layers of each kind.
# timeout: 300
. "$SOURCE/tests/support/page.sh"
. "$SOURCE/tests/support/chats.sh"
mv chats.jsonl chats.json
small='"vocab_size": 400, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2,
 "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 2048,
 "eos_token_id": 1'
make() { # NAME JSON
    echo "{$2, $small}" >tiny.json
    "$SIFR" init --config tiny.json --tokenizer tok --output "$1" --seed 3 >/dev/null
}
make LFM2-1.2B '"model_type": "lfm2", "architectures": ["Lfm2ForCausalLM"],
 "layer_types": ["conv", "full_attention"], "block_multiple_of": 8'
make gemma-4-12B-it '"model_type": "gemma4_unified_text", "head_dim": 16, "sliding_window": 48,
 "architectures": ["Gemma4UnifiedForCausalLM"], "global_head_dim": 32, "num_global_key_value_heads": 1'
make Qwen3.5-2B '"model_type": "qwen3_5_text", "architectures": ["Qwen3_5ForCausalLM"],
 "head_dim": 16, "layer_types": ["linear_attention", "full_attention"], "linear_num_key_heads": 2,
 "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16'
page tune-new-models
