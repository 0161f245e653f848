# Conversations of several turns with released chat templates that write earlier turns anew: what is
# shown is what is learned, and one, two and four ranks train on it alike. Takes 4 s.
# timeout: 120
. "$SOURCE/tests/support/expect.sh"
sifr() { "$SIFR" "$@"; }
. "$SOURCE/tests/support/chats.sh"
chat_model model llama LlamaForCausalLM true
# template NAME: one of tests/golden/turns, in NAME.jinja
template() {
    zcat "$SOURCE/tests/golden/turns/templates.jsonl.gz" |
        sed -n "s/^{\"name\": \"$1\", \"text\": \"\(.*\)\"}\$/\1/p" |
        sed 's/\\\\/\x01/g; s/\\"/"/g; s/\\n/\n/g; s/\\t/\t/g; s/\x01/\\/g' >"$1.jinja"
    [ -s "$1.jinja" ] || fail "no template $1"
}
template qwen3_5_think
template gptoss
cat >turns.jsonl <<'J'
{"messages": [{"role": "user", "content": [{"type": "text", "text": "Two and two?"}]}, {"role": "assistant", "content": "Four.", "reasoning_content": "I add."}, {"role": "user", "content": "And two?"}, {"role": "assistant", "content": "", "reasoning_content": "I ask.", "tool_calls": [{"type": "function", "function": {"name": "sum", "arguments": {"of": "4 2"}}}]}, {"role": "tool", "name": "sum", "content": "6"}, {"role": "assistant", "content": "Six.", "thinking": "So it is."}]}
J
inspect() { expect 0 sifr data inspect --model model --data turns.jsonl --seq-length 2048 --color never "$@"; }
shows() { tr '\n' '~' <out | grep -qF "$1" || { cat out; fail "does not show $1"; }; }
hides() { ! tr '\n' '~' <out | grep -qF "$1" || { cat out; fail "shows $1"; }; }
inspect --chat-template qwen3_5_think.jinja
shows '<|im_start|>assistant~⟦Four.<|im_end|>~⟧<|im_start|>user'
shows '<|im_start|>assistant~⟦<think>~I ask.~</think>~~<tool_call>~<function=sum>~<parameter=of>~4 2~</parameter>~</function>~</tool_call><|im_end|>~⟧<|im_start|>user~<tool_response>~6'
shows '⟦<think>~So it is.~</think>~~Six.<|im_end|>'
hides 'I add.'
inspect --chat-template gptoss.jinja
shows '⟦<|start|>assistant<|channel|>final<|message|>Four.<|end|>⟧<|start|>user<|message|>And two?'
shows '⟦<|start|>assistant<|channel|>analysis<|message|>So it is.<|end|><|start|>assistant<|channel|>final<|message|>Six.<|return|>'
shows 'Current date: 2024-07-26'
inspect --chat-template gptoss.jinja --chat-template-date 2025-08-05
shows 'Current date: 2025-08-05'
inspect --chat-template qwen3_5_think.jinja --chat-template-date 2025-08-05
grep -qF 'does not ask for the date, so chat_template_date changes nothing' err || { cat err; fail "silent"; }
expect 2 sifr data inspect --model model --data turns.jsonl --chat-template-date today
grep -qF "chat_template_date: 'today' is no day" err || { cat err; fail "no reason"; }

for i in 1 2 3 4 5 6 7 8; do cat turns.jsonl; done >rows.jsonl
for ranks in 1 2 4; do
    expect 0 sifr train --model model --data rows.jsonl --seq-length 1024 --threads 1 --ranks $ranks \
        --chat-template gptoss.jinja --chat-template-date 2025-08-05 --output out-$ranks \
        --per-device-train-batch-size 1 --gradient-accumulation-steps $((4 / ranks)) --max-steps 2
    sum=$(sha256sum <out-$ranks/model.safetensors)
    [ "$sum" = "${first:=$sum}" ] || fail "$ranks ranks: other weights"
    cmp -s gptoss.jinja out-$ranks/chat_template.jinja || fail "the output has another template"
done
