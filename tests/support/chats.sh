# Sourced by tests that tune a model on chats: a tokenizer with a chat template in tok/, and 48 chats
# with something to learn in chats.jsonl.
mkdir tok
cp "$SOURCE/tests/golden/finetune/byte.json" tok/tokenizer.json
echo '{"bos_token": "<s>", "eos_token": "</s>"}' >tok/tokenizer_config.json
cat >tok/chat_template.jinja <<'J'
{% for m in messages %}<|im_start|>{{ m.role + '\n' + m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}
J
awk 'BEGIN {
    split("red blue green", colour, " ")
    for (i = 0; i < 48; i++) {
        k = i % 3 + 1
        printf "{\"messages\": [{\"role\": \"user\", \"content\": \"Say %d\"}, ", k
        printf "{\"role\": \"assistant\", \"content\": \"%s\"}]}\n", colour[k]
    }
}' >chats.jsonl
# chat_model NAME TYPE ARCHITECTURE TIED: two small layers of this type with random weights, in NAME/
chat_model() {
    cat >tiny.json <<J
{"model_type": "$2", "architectures": ["$3"], "vocab_size": 400,
 "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 2048, "tie_word_embeddings": $4,
 "eos_token_id": 1}
J
    "$SIFR" init --config tiny.json --tokenizer tok --output "$1" --seed 3 >/dev/null
}
