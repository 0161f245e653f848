# Chat templates and their variables through the commands: what trains is what is inspected, scored,
# evaluated and talked to, the output gets the template, and another one is another run.
# timeout: 120
. "$SOURCE/tests/support/expect.sh"
sifr() { "$SIFR" "$@"; }
complains() { [ "$(wc -l <err)" = 1 ] && grep -qFe "$1" err || { cat err; fail "no '$1'"; }; }
field() { sed -n "s/^.*\"$1\": \([^,}]*\).*$/\1/p" out; }
. "$SOURCE/tests/support/chats.sh"
chat_model model llama LlamaForCausalLM true
cat >loud.jinja <<'J'
{% for m in messages %}{{ '!' if loud }}<|im_start|>{{ m.role + '\n' + m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}{{ '!' if loud }}<|im_start|>assistant
{% endif %}
J
echo '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}' >one.jsonl
for i in 1 2 3 4 5 6 7 8; do cat one.jsonl; done >rows.jsonl
loud='--chat-template loud.jinja --chat-template-kwargs {"loud":true}'
inspect() { expect 0 sifr data inspect --model model --seq-length 64 --json "$@"; }
inspect --data rows.jsonl
quiet=$(field tokens)
inspect --data rows.jsonl $loud
[ "$(field tokens)" = $((quiet + 16)) ] || fail "not louder: $(cat out)"
echo '{"sifr": {"chat_template": "loud.jinja", "chat_template_kwargs": {"loud": true}}}' >loud.json
inspect --data rows.jsonl --config loud.json
[ "$(field tokens)" = $((quiet + 16)) ] || fail "the config is not louder: $(cat out)"

train() { expect "$1" sifr train --model model --data rows.jsonl --seq-length 64 --threads 1 \
    --per-device-train-batch-size 4 --output out-"$2" "${@:3}"; }
train 0 loud $loud --max-steps 2
cmp -s loud.jinja out-loud/chat_template.jinja || fail "the output has another template"
train 0 quiet --max-steps 2
cmp -s model/chat_template.jinja out-quiet/chat_template.jinja || fail "the template is not kept"
[ "$(sha256sum <out-loud/model.safetensors)" != "$(sha256sum <out-quiet/model.safetensors)" ] ||
    fail "both train alike"
train 0 again $loud --max-steps 1 --save-steps 1
train 2 again --chat-template loud.jinja --max-steps 2 --resume
grep -qF 'tokens of data' err || { cat err; fail "another text goes on"; }
train 0 again $loud --max-steps 2 --resume
expect 0 cmp out-again/model.safetensors out-loud/model.safetensors
expect 0 sifr plan --model model --config loud.json --seq-length 64

# The trained folder has the template; its variables are given where it is used.
expect 0 sifr eval --model out-loud --data rows.jsonl --seq-length 64 --json
low=$(field loss)
expect 0 sifr eval --model out-loud --data rows.jsonl --seq-length 64 --json \
    --chat-template-kwargs '{"loud": true}'
[ "$(field loss)" != "$low" ] || fail "eval does not read the variables"
expect 0 sifr score --model out-loud --data rows.jsonl --seq-length 64 --output s.safetensors $loud
ask() { expect 0 sifr generate --model "$1" --chat --prompt a --max-new-tokens 1 --json "${@:2}"; }
ask model
few=$(tr -d ' \n' <out | sed 's/.*"prompt_ids":\[\([^]]*\)\].*/\1/' | tr , '\n' | wc -l)
ask model $loud
many=$(tr -d ' \n' <out | sed 's/.*"prompt_ids":\[\([^]]*\)\].*/\1/' | tr , '\n' | wc -l)
[ "$many" = $((few + 2)) ] || fail "generate: $many and $few tokens"
echo a | expect 0 sifr chat out-loud --max-new-tokens 1 --chat-template-kwargs '{"loud": true}'

# An adapter has its template, which goes on with it and into what is merged.
train 0 adapter $loud --max-steps 1 --lora '{"r": 2}'
ask out-adapter --chat-template-kwargs '{"loud": true}'
[ "$(tr -d ' \n' <out | sed 's/.*"prompt_ids":\[\([^]]*\)\].*/\1/' | tr , '\n' | wc -l)" = "$many" ] ||
    fail "the adapter has another template"
expect 0 sifr merge model out-adapter merged
cmp -s loud.jinja merged/chat_template.jinja || fail "the merged model has another template"
expect 0 sifr eval --model model --adapter out-adapter --data rows.jsonl --seq-length 64 --json \
    --chat-template-kwargs '{"loud": true}'
loss=$(field loss)
expect 0 sifr eval --model merged --data rows.jsonl --seq-length 64 --json --chat-template-kwargs '{"loud": true}'
[ "$(field loss | cut -c1-6)" = "$(echo $loss | cut -c1-6)" ] || fail "merged $(field loss), adapter $loss"
expect 0 sifr train --model model --adapter out-adapter --data rows.jsonl --seq-length 64 --threads 1 \
    --per-device-train-batch-size 4 --output out-on --max-steps 1
cmp -s loud.jinja out-on/chat_template.jinja || fail "the next adapter has another template"

# What cannot be used.
expect 2 sifr generate --model model --prompt a --chat-template loud.jinja
complains '--chat-template: acts with --chat alone'
expect 2 sifr chat model --chat-template-kwargs '{"lout": true}' </dev/null
complains "the chat template has no variable 'lout'"
train 2 no --chat-template-kwargs 1 --max-steps 1
complains '--chat-template-kwargs must be an object'
train 2 no --chat-template nothing --max-steps 1
complains 'chat_template nothing: no such file or name'
echo text >a.txt
expect 2 sifr eval --model model --data a.txt --seq-length 4 $loud
complains 'chat_template: a.txt is text or a token store, which no chat template writes'

# A tokenizer that puts a token before a text which begins with it already.
cp -r tok begins
bos='{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"<s>":{"id":"<s>","ids":[0],"tokens":["<s>"]}}}'
sed "s/\"post_processor\":null/\"post_processor\":$bos/" tok/tokenizer.json >begins/tokenizer.json
cp begins/tokenizer.json model
printf '<s>a text with what begins it' >a.txt
expect 0 sifr tokenize --tokenizer begins --data a.txt --output store
grep -qF '1 document begins with <s>, and the tokenizer puts another one before it' err || fail "$(cat err)"
expect 0 sifr generate --model model --prompt '<s>a' --max-new-tokens 1
grep -qF 'give --no-special-tokens' err || fail "$(cat err)"
expect 0 sifr generate --model model --prompt '<s>a' --max-new-tokens 1 --no-special-tokens
[ ! -s err ] || fail "$(cat err)"
