# label: short
# docs/lora.md, with a model of two small layers.
# timeout: 300
. "$SOURCE/tests/support/page.sh"
. "$SOURCE/tests/support/chats.sh"
chat_model llama llama LlamaForCausalLM false
page lora
[ -e llama-tuned/model.safetensors ] || fail "nothing merged"
