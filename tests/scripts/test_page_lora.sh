# label: short
# docs/lora.md, with a model of two small layers.
# timeout: 300
. "$SOURCE/tests/support/page.sh"
mkdir tok
cp "$SOURCE/tests/golden/finetune/byte.json" tok/tokenizer.json
echo '{"bos_token": "<s>", "eos_token": "</s>"}' >tok/tokenizer_config.json
cat >tok/chat_template.jinja <<'J'
{% for m in messages %}<|im_start|>{{ m.role + '\n' + m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}
J
cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 400,
 "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 2048, "tie_word_embeddings": false,
 "eos_token_id": 1}
J
"$SIFR" init --config tiny.json --tokenizer tok --output llama --seed 3 >/dev/null
awk 'BEGIN {
    split("red blue green", colour, " ")
    for (i = 0; i < 48; i++) {
        k = i % 3 + 1
        printf "{\"messages\": [{\"role\": \"user\", \"content\": \"Say %d\"}, ", k
        printf "{\"role\": \"assistant\", \"content\": \"%s\"}]}\n", colour[k]
    }
}' >chats.jsonl
page lora
[ -e llama-tuned/model.safetensors ] || fail "nothing merged"
