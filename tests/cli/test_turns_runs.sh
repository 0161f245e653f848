# What is learned of messages, by configs of axolotl and of TRL through the commands: an import, what
# is inspected, the same bits on 1 and 2 ranks, and other turns are another run.
# timeout: 120
. "$SOURCE/tests/support/expect.sh"
sifr() { "$SIFR" "$@"; }
field() { sed -n "s/^.*\"$1\": \([^,}]*\).*$/\1/p" out; }
. "$SOURCE/tests/support/chats.sh"
chat_model model llama LlamaForCausalLM true
row='{"role": "user", "content": "ask"}, {"role": "assistant", "content": "yes"}'
for i in 1 2 3 4; do
    echo "{\"messages\": [$row, {\"role\": \"user\", \"content\": \"$i\"}]}"
done >chats.jsonl
for i in 1 2 3 4; do
    echo "{\"prompt\": [$row, {\"role\": \"user\", \"content\": \"b\"}], \"completion\": [{\"role\": \"assistant\", \"content\": \"c$i\"}, $row]}"
done >answers.jsonl

# What is learned stands between marks.
shows() { expect 0 sifr data inspect --model model --seq-length 64 --samples 1 --color never --config "$1"
    tr -d '\n' <out | grep -qF -- "$2" || { cat out; fail "no $2"; }; }
axolotl() { expect 0 sifr import --config axolotl.yaml --overwrite ds.json; }
cat >axolotl.yaml <<'Y'
base_model: model
sequence_len: 64
datasets:
  - {path: chats.jsonl, type: chat_template, roles_to_train: [user], train_on_eos: last}
eot_tokens: ['<|im_end|>']
micro_batch_size: 2
gradient_accumulation_steps: 2
bf16: false
save_strategy: "no"
warmup_steps: 0
max_steps: 2
Y
axolotl
shows ds.json '⟦ask⟧<|im_end|><|im_start|>assistantyes<|im_end|><|im_start|>user⟦1<|im_end|>⟧'
sed -i 's/"path": "chats.jsonl"/&, "roles_to_train": ["assistant"], "train_on_eos": "all"/' ds.json
shows ds.json 'ask⟦<|im_end|>⟧<|im_start|>assistant⟦yes<|im_end|>⟧<|im_start|>user1⟦<|im_end|>⟧'
axolotl

hash() { sha256sum <"$1/model.safetensors"; }
train() { expect "$1" sifr train --threads 1 --output "$2" "${@:3}"; }
train 0 one --config ds.json
train 0 two --config ds.json --ranks 2 --gradient-accumulation-steps 1
[ "$(hash one)" = "$(hash two)" ] || fail "2 ranks train other bits"
train 0 again --config ds.json --max-steps 1 --save-steps 1
sed 's/"last"/"none"/' ds.json >none.json
train 2 again --config none.json --resume
grep -qF 'data (hash)' err || { cat err; fail "other ends of turns go on"; }
train 0 again --config ds.json --resume
[ "$(hash one)" = "$(hash again)" ] || fail "a resume has other bits"

cat >trl.yaml <<'Y'
model_name_or_path: model
dataset_name: answers.jsonl
assistant_only_loss: true
max_length: 64
per_device_train_batch_size: 2
gradient_accumulation_steps: 2
bf16: false
max_steps: 2
Y
expect 0 sifr import --config trl.yaml trl.json
shows trl.json 'assistant⟦c1<|im_end|>⟧<|im_start|>userask<|im_end|><|im_start|>assistant⟦yes<|im_end|>⟧'
train 0 trl-one --config trl.json
train 0 trl-two --config trl.json --ranks 2 --gradient-accumulation-steps 1
[ "$(hash trl-one)" = "$(hash trl-two)" ] || fail "2 ranks train other bits"

# What has no turns to learn.
refused() { expect 2 "${@:2}"; grep -qF -- "$1" err || { cat err; fail "no '$1'"; }; }
echo '{"prompt": "a ", "completion": "b"}' >texts.jsonl
refused 'a text has no turns of the assistant' sifr data inspect --model model --seq-length 64 \
    --data texts.jsonl --train-on assistant_only
for part in '--train-on assistant_turns' '--roles-to-train user'; do
    refused 'of preferences whole answers are compared' sifr train --model model --seq-length 64 \
        --data chats.jsonl --output none --preference sigmoid $part
done
