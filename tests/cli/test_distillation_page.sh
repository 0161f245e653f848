# label: short
# The commands of docs/distillation.md, at small size, word for word.
# timeout: 300
. "$SOURCE/tests/support/expect.sh"
sifr() { "$SIFR" "$@"; }
mkdir tok
cp "$SOURCE/tests/golden/finetune/byte.json" tok/tokenizer.json
echo '{"eos_token": "</s>"}' >tok/tokenizer_config.json
cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 400,
 "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 256, "tie_word_embeddings": false,
 "pad_token_id": 0, "eos_token_id": 1}
J
for name in teacher student; do
    sifr init --config tiny.json --tokenizer tok --output $name --seed ${#name} >/dev/null
done
awk 'BEGIN { for (i = 0; i < 8; i++) printf "{\"prompt\": \"Say %d\", \"completion\": \" %d\"}\n", i, i }' \
    >chats.jsonl
page=distillation
# Lines that are indented and begin a command, with those that continue it.
awk '/^    sifr / { on = 1 } on { print substr($0, 5) } !/\\$/ { on = 0 }' \
    "$SOURCE/docs/$page.md" >"$page.sh"
[ "$(grep -c '^sifr ' $page.sh)" -ge 3 ] || fail "no commands in $page.md"
bash -eu -c "sifr() { \"$SIFR\" \"\$@\"; }; . ./$page.sh" >out 2>err ||
    { cat out err; fail "a command of $page.md fails"; }
