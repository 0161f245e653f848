# label: short
# docs/preferences.md, with a model of two small layers; and that it learns.
# timeout: 300
. "$SOURCE/tests/support/page.sh"
. "$SOURCE/tests/support/chats.sh"
chat_model Qwen2.5-0.5B-Instruct qwen2 Qwen2ForCausalLM true
page preferences
last() { tail -n 1 "$1/metrics.jsonl" | sed -n "s|^.*\"$2\":\([^,}]*\).*$|\1|p"; }
for run in better other; do
    [ "$(last $run rewards/accuracies)" = 1.0 ] || fail "$run: accuracy $(last $run rewards/accuracies)"
done
