# label: short
# docs/come-from-axolotl-or-trl.md, with a model of two small layers.
# timeout: 300
. "$SOURCE/tests/support/page.sh"
. "$SOURCE/tests/support/chats.sh"
chat_model Qwen2.5-1.5B-Instruct qwen2 Qwen2ForCausalLM true
page come-from-axolotl-or-trl
