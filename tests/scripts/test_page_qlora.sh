# label: short
# docs/qlora.md, with a model of two small layers.
# timeout: 300
. "$SOURCE/tests/support/page.sh"
. "$SOURCE/tests/support/chats.sh"
chat_model Llama-3.2-1B llama LlamaForCausalLM true
mv chats.jsonl chats.json
page qlora
