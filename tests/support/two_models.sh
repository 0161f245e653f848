# Sourced by tests that train small models of two kinds, Llama and GPT-2, with the tokenizer in tok/.
two_models() { # POSITIONS: llama/ and gpt2/, with random weights
    local kind
    cat >llama.json <<J
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
 "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": $1, "tie_word_embeddings": false}
J
    # Dropout is on, as transformers has it by default.
    cat >gpt2.json <<J
{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 300, "n_embd": 64,
 "n_layer": 2, "n_head": 4, "n_positions": $1}
J
    for kind in llama gpt2; do
        "$SIFR" init --config $kind.json --tokenizer tok --output $kind --seed 3 >/dev/null
    done
}
