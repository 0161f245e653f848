# label: short
# docs/lora.md, with a model of two small layers.
# timeout: 300
. "$SOURCE/tests/support/page.sh"
. "$SOURCE/tests/support/chats.sh"
chat_model Llama-3.2-1B llama LlamaForCausalLM false
mv chats.jsonl chats.json
page lora
[ -e merged/model.safetensors ] || fail "nothing merged"
