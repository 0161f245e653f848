# label: short
# Rows to fine-tune on, as a user trains on them: docs/fine-tuning.md.
# timeout: 300
. "$SOURCE/tests/support/expect.sh"
sifr() { "$SIFR" "$@"; }
says() { grep -qE "$1" out || { cat out err; fail "no '$1'"; }; }
warns() { grep -qF "$1" err || { cat err; fail "no '$1'"; }; }
complains() { [ "$(wc -l <err)" = 1 ] && grep -qFe "$1" err || { cat err; fail "no '$1'"; }; }
field() { sed -n "s/^.*\"$1\": \([^,}]*\).*$/\1/p" out; }

. "$SOURCE/tests/support/chats.sh"
cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 400,
 "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 128, "tie_word_embeddings": false,
 "pad_token_id": 0, "eos_token_id": 1}
J
sifr init --config tiny.json --tokenizer tok --output model --seed 3 >/dev/null
run() { # CODE OUTPUT OPTION…
    local code=$1 output=$2
    shift 2
    rm -rf "$output"
    expect "$code" sifr train --model model --output "$output" --seq-length 48 \
        --per-device-train-batch-size 8 --learning-rate 1e-2 --threads 1 "$@"
}

# --- a run that learns to answer, and what it says ---
run 0 tuned --data chats.jsonl --validation-split 0.125 --max-steps 60
says 'chats.jsonl: rows of type messages'
says 'data: 48 rows, [0-9,]+ tokens, of which [0-9,]+ are learned'
says 'data: 42 rows to learn, 6 held out'
says 'step 60/60  eval loss 0\.0'
echo "Say 2" >question
expect 0 sifr chat tuned --max-new-tokens 12 --temperature 0 <question
grep -q blue out || { cat out err; fail "no answer"; }

# The same rows in other clothes are the same run, to the bit.
whole=$(sha256sum <tuned/model.safetensors)
gzip -c chats.jsonl >chats.jsonl.gz
{ echo '['; sed '$!s/$/,/' chats.jsonl; echo ']'; } >chats.json
mkdir -p folder/deep
cp chats.jsonl.gz folder/deep
others="chats.jsonl.gz chats.json folder"
parquet=$(sifr doctor --json | grep -c '"carquet"' || :)
if [ "$parquet" = 1 ]; then
    cp "$SOURCE/tests/golden/parquet/chats.parquet" .
    others="$others chats.parquet"
fi
for file in $others; do
    run 0 again --data "$file" --validation-split 0.125 --max-steps 60
    [ "$(sha256sum <again/model.safetensors)" = "$whole" ] || fail "$file is another run"
done
run 0 again --data 'folder/d*' --max-steps 1
says 'data: 48 rows'
echo read me >folder/README
run 2 again --data folder --max-steps 1
complains "folder/README is text or a token store, but other data are rows"
cat >ds.json <<'J'
{"sifr": {"dataset": [{"path": "chats.json", "type": "messages", "weight": 1}],
          "validation_split": 0.125, "max_steps": 60}}
J
run 0 again --config ds.json
[ "$(sha256sum <again/model.safetensors)" = "$whole" ] || fail "the dataset is another run"
run 0 again --dataset '[{"path": "chats.json", "weight": 0.5}]' --max-steps 1
says 'chats.json: rows of type messages'
run 2 again --dataset '[{"path": "chats.json", "weight": -1}]' --max-steps 1
complains '--dataset[0].weight must be a number above 0'
run 2 again --dataset '[{"path": "chats.json"' --max-steps 1
complains '--dataset: not valid JSON at line 1'

# Fields under names of their own.
sed 's/"messages":/"talk":/' chats.jsonl >talks.jsonl
sed 's/chats.json", "type": "messages"/talks.jsonl", "fields": {"messages": "talk"}/' ds.json >talks.json
run 0 again --config talks.json
[ "$(sha256sum <again/model.safetensors)" = "$whole" ] || fail "named fields are another run"
echo '{"question": "Two and two?", "answer": " four"}' >asked.jsonl
cat >asked.json <<'J'
{"sifr": {"dataset": [{"path": "asked.jsonl", "fields": {"prompt": "question", "completion": "answer"}}]}}
J
expect 0 sifr data inspect --model model --config asked.json
grep -q 'Two and two?⟦ four' out || { cat out; fail "question and answer are not read"; }
grep -q '^1 row, ' out && grep -q ': 0 rows would be cut' out || { cat out; fail "words of counts"; }
expect 0 sifr data inspect --model model --data asked.jsonl --data-fields prompt=question \
    --data-fields completion=answer --json
[ "$(field rows)" = 1 ] || fail "$(cat out)"
run 0 again --data talks.jsonl --eval-data talks.jsonl --data-fields messages=talk --max-steps 1
expect 0 sifr score --model model --data talks.jsonl --data-fields messages=talk --seq-length 48 \
    --output scores.safetensors
expect 0 sifr eval --model model --data chats.jsonl --seq-length 48 --json
loss=$(field loss)
expect 0 sifr eval --model model --data talks.jsonl --data-fields messages=talk --seq-length 48 --json
[ -n "$loss" ] && [ "$(field loss)" = "$loss" ] || fail "named fields evaluate otherwise: $(cat out)"
expect 0 sifr eval --model model --data talks.jsonl --data-fields messages=talk --train-on all \
    --seq-length 48 --json
[ "$(field loss)" != "$loss" ] || fail "--train-on all evaluates the same part"
expect 1 sifr eval --model model --data talks.jsonl --data-type messages --seq-length 48
complains 'talks.jsonl: row 1, line 1: '
expect 2 sifr eval --model model --data talks.jsonl --data-fields talk=messages --seq-length 48
complains 'data-fields: "talk" in "talk=messages" is no field of a row here'
(cat talks.jsonl; echo '{"talk": 1}') >torn.jsonl
expect 1 sifr eval --model model --data torn.jsonl --data-fields messages=talk --seq-length 48
expect 0 sifr eval --model model --data torn.jsonl --data-fields messages=talk --seq-length 48 \
    --skip-bad-rows --json
[ "$(field loss)" = "$loss" ] || fail "a skipped row counts: $(cat out)"
warns 'torn.jsonl: row 49, line 49: '
expect 2 sifr data inspect --model model --data asked.jsonl --data-fields question=prompt
complains 'data-fields: "question" in "question=prompt" is no field of a row here'
echo text >asked.txt
run 2 no --data asked.txt --data-fields text=body --max-steps 1
complains 'data_fields: asked.txt is text or a token store, which has no fields'
expect 2 sifr data inspect --model model --data asked.jsonl --data-fields prompt
complains 'data-fields: "prompt" must be a field here and the file'
echo '{"question": "Two and two?"}' >asked.jsonl
run 1 no --config asked.json --max-steps 1
complains "row 1, line 1: 'answer' is missing, which is taken as 'completion'"
sed 's/"prompt": "question"/"question": "prompt"/' asked.json >wrong.json
run 2 no --config wrong.json --max-steps 1
complains 'sifr.dataset[0].fields.question is no field of a row here'

# Fields that would change the text are not lost.
echo '{"prompt": "a", "completion": "b", "system": "c", "id": 1}' >beside.jsonl
expect 1 sifr data inspect --model model --data beside.jsonl
complains "row 1, line 1: 'system' holds text that rows of the form prompt_completion do not read"
expect 0 sifr data inspect --model model --data beside.jsonl --ignore-fields system
warns 'beside.jsonl: field not read: id'
echo '{"sifr": {"dataset": [{"path": "beside.jsonl", "ignore_fields": ["system", "id"]}]}}' >beside.json
expect 0 sifr data inspect --model model --config beside.json
[ "$(grep -c 'not read' err)" = 0 ] || fail "a field that is left out is named: $(cat err)"
echo '{"sifr": {"dataset": [{"path": "beside.jsonl", "ignore_fields": "system"}]}}' >beside.json
expect 2 sifr data inspect --model model --config beside.json
complains 'sifr.dataset[0].ignore_fields must be a list of fields such as ["system"]'
expect 2 sifr data inspect --model model --data asked.txt --ignore-fields id
complains 'asked.txt'

# Text of a source's own, as axolotl's types and those of its users make it.
cat >made.jsonl <<'J'
{"instruction": "Two and two?", "output": "four"}
{"instruction": "Add", "input": "{2} 2", "output": "4", "system": "Be short."}
J
formatted() { # MORE
    cat >made.json <<J
{"sifr": {"dataset": [{"path": "made.jsonl", $1}]}}
J
}
all='"format": "{{Q}} {instruction} ({input}): ", "no_input_format": "Q {instruction}: "'
formatted "\"type\": \"alpaca\", $all, \"system_format\": \"<{system}> \""
expect 0 sifr data inspect --model model --config made.json
says 'Q Two and two\?: ⟦four'
says '<Be short\.> \{Q\} Add \(\{2\} 2\): ⟦4'
# axolotl's types read the fields that axolotl reads, and no others.
imported() { # TYPE
    printf 'base_model: model\ndatasets: [{path: made.jsonl, type: %s}]\n' "$1" >ax.yaml
    expect 0 sifr import --config ax.yaml --overwrite ax.json
    expect 0 sifr data inspect --config ax.json
    ! grep -q 'Be short' out || { cat out; fail "axolotl does not read a system prompt here: $1"; }
}
imported alpaca
says '### Input:'
imported '{field_instruction: instruction, field_output: output, format: "I {instruction} O {input}", no_input_format: "[{instruction}]"}'
says '\[Add\]⟦4'
formatted "\"type\": \"alpaca\", $all, \"system_format\": \"<{system}> \""
for i in 1 2 3 4; do cat made.jsonl; done >eight.jsonl
sed 's/made.jsonl/eight.jsonl/' made.json >eight.json
for ranks in 1 2 4; do
    rm -rf eight
    expect 0 sifr train --model model --config eight.json --output eight --seq-length 48 --threads 1 \
        --per-device-train-batch-size 2 --gradient-accumulation-steps $((4 / ranks)) --max-steps 2 --ranks $ranks
    sum=$(sha256sum <eight/model.safetensors)
    [ "$sum" = "${eight:=$sum}" ] || fail "formatted rows on $ranks ranks: other weights"
done
formatted "\"type\": \"alpaca\", \"format\": \"{instruction}/{input}=\""
expect 0 sifr data inspect --model model --config made.json
says 'Two and two\?/=⟦four'
says 'Be short\.Add/\{2\} 2=⟦4'
refused() { # MORE MESSAGE
    formatted "$1"
    expect 2 sifr data inspect --model model --config made.json
    complains "$2"
}
refused '"type": "alpaca", "format": "{instruction} {text}"' \
    'sifr.dataset[0].format: "{text}" is no field of it (fields in braces: instruction|input)'
refused '"type": "alpaca", "format": "{instruction} {Input}"' \
    'sifr.dataset[0].format: "{Input}" is no field'
refused '"type": "alpaca", "format": "}{instruction}"' \
    'sifr.dataset[0].format: "}{instruction}" is no field'
refused '"type": "messages", "format": "{instruction}"' \
    'sifr.dataset[0].type must be alpaca, where a format is given'
refused '"type": "alpaca", "system_format": "{system}"' \
    'sifr.dataset[0].format must be given with no_input_format or system_format'

# It goes on from a checkpoint, and not with other rows learned.
run 0 parts --data chats.jsonl --validation-split 0.125 --max-steps 60 --save-steps 30
rm -rf parts/checkpoint-60 parts/model.safetensors
echo checkpoint-30 >parts/latest
cp -r parts other
expect 0 sifr train --model model --output parts --seq-length 48 --per-device-train-batch-size 8 \
    --learning-rate 1e-2 --threads 1 --data chats.jsonl --validation-split 0.125 --max-steps 60 \
    --save-steps 30 --resume
[ "$(sha256sum <parts/model.safetensors)" = "$whole" ] || fail "resumed to other weights"
expect 2 sifr train --model model --output other --seq-length 48 --per-device-train-batch-size 8 \
    --learning-rate 1e-2 --threads 1 --data chats.jsonl --validation-split 0.125 --max-steps 60 \
    --save-steps 30 --resume --train-on all
warns "data (hash)"

# Evaluation takes rows too: the same loss as the run's own.
run 0 tuned --data chats.jsonl --eval-data chats.jsonl --max-steps 5 --json
loss=$(field eval_loss | cut -c1-7)
expect 0 sifr eval --model tuned --data chats.jsonl --seq-length 48 --precision fp32 --json
[ "$(field loss | cut -c1-7)" = "$loss" ] || fail "$(cat out), not $loss"

# --- packed: fewer sequences, which learn the same; not resumed as rows that are not ---
packed="--data chats.jsonl --validation-split 0.125 --max-steps 60 --save-steps 30 --seq-length 96 --packing"
run 0 packed $packed
says 'data: packed 42 rows into [0-9]+ sequences of 96 tokens, [0-9.]+ % filled'
says 'eval_data: packed 6 rows into [0-9]+ sequences of 96 tokens'
says 'step 60/60  eval loss 0\.0'
expect 0 sifr chat packed --max-new-tokens 12 --temperature 0 <question
grep -q blue out || { cat out err; fail "no answer"; }
whole=$(sha256sum <packed/model.safetensors)
rm -rf packed/checkpoint-60 packed/model.safetensors
echo checkpoint-30 >packed/latest
cp -r packed other-rows
again="sifr train --model model --per-device-train-batch-size 8 --threads 1
    --learning-rate 1e-2 --resume"
expect 2 $again --output other-rows ${packed% *}
warns "data (hash)"
expect 0 $again --output packed $packed --threads 2
[ "$(sha256sum <packed/model.safetensors)" = "$whole" ] || fail "resumed to other weights"
expect 0 sifr plan --model model --seq-length 48 --packing
# Rows by themselves have the loss that they have in one sequence.
run 0 packed --data chats.jsonl --eval-data chats.jsonl --packing --max-steps 5 --json
loss=$(field eval_loss | cut -c1-7)
expect 0 sifr eval --model packed --data chats.jsonl --seq-length 48 --precision fp32 --json
[ "$(field loss | cut -c1-7)" = "$loss" ] || fail "$(cat out), packed $loss"
expect 0 sifr data inspect --model model --data chats.jsonl --seq-length 48
says 'a row a sequence fills [0-9.]+ % of them; packed, the rows take [0-9]+ sequences'

# --- rows of one length together: another order, the same at any number of threads ---
run 0 grouped --data chats.jsonl --group-by-length --max-steps 12
grouped=$(sha256sum <grouped/model.safetensors)
run 0 grouped --data chats.jsonl --group-by-length --max-steps 12 --threads 2
[ "$(sha256sum <grouped/model.safetensors)" = "$grouped" ] || fail "another order"

# --- what is cut, left out and skipped ---
{
    echo '{"prompt": "a:", "completion": "b"}'
    echo '{"prompt": "a:"}'
    echo '{"prompt": "0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9", "completion": "b"}'
    echo '{"prompt": "a:", "completion": "0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8"}'
} >mixed.jsonl
run 1 bad --data mixed.jsonl --max-steps 1
complains "mixed.jsonl: row 2, line 2: 'completion' is missing"
[ ! -e bad/model.safetensors ] || fail "a refused run wrote a model"
run 0 bad --data mixed.jsonl --max-steps 1 --skip-bad-rows
warns "1 row is longer than seq_length 48 and cut at the end"
warns "1 row is left out: nothing in it is learned within seq_length"
warns "1 bad row skipped"

# --- what templates do, and rows say, that a user may not see ---
cp model/chat_template.jinja plain.jinja
cat >model/chat_template.jinja <<'J'
{% for m in messages %}{% if m.role != 'developer' %}<|im_start|>{{ m.role + '\n' + (m.content or '') }}
{%- for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}
J
cat >odd.jsonl <<'J'
{"messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]}
{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "x", "tool_calls": [{"function": {"name": "f", "arguments": "{\"b\": 1}"}}]}]}
{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "no", "weight": 0}, {"role": "user", "content": "b"}, {"role": "assistant", "content": "yes", "weight": 1}]}
{"messages": [{"role": "user", "content": " twice "}, {"role": "user", "content": "once"}, {"role": "assistant", "content": "yes"}]}
J
for marks in without with; do
    if [ $marks = with ]; then
        sed -i 's/{{ m.role .*/{{ m.role + "\\n" }}{% if m.role == "assistant" %}{% generation %}{{ m.content or "" }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}/' \
            model/chat_template.jinja
    fi
    expect 0 sifr data inspect --model model --data odd.jsonl --samples 4 --seq-length 128
    warns "in 1 row the chat template leaves out a message of the system, a developer or a user"
    warns "in 1 row the arguments of a tool call are JSON in a string"
    grep -q '^no' out || { cat out; fail "$marks marks: weight 0 is learned"; }
    [ "$(grep -c '^⟦yes' out)" = 3 ] || { cat out; fail "$marks marks: not learned"; }
done
sed -i 's/{% endgeneration %}/&{% generation %}.{% endgeneration %}/' model/chat_template.jinja
expect 1 sifr data inspect --model model --data odd.jsonl
warns 'odd.jsonl: row 3, line 3: 2 messages of the assistant have 4 marks'
mv plain.jinja model/chat_template.jinja

# --- refused ---
echo text >plain.txt
run 2 no --data plain.txt --packing --max-steps 1
complains "packing: plain.txt is text or a token store, which is cut into full windows"
run 2 no --data plain.txt --group-by-length --max-steps 1
complains "group_by_length: plain.txt is text or a token store"
run 2 no --data chats.jsonl --packing --group-by-length --max-steps 1
complains "group_by_length: packed sequences have one length"
run 2 no --data chats.jsonl --packing --task sequence_classification --labels a,b --max-steps 1
complains '"packing" is for causal_lm'
run 2 no --data chats.jsonl plain.txt --max-steps 1
complains "plain.txt is text or a token store, but other data are rows"
echo text >x.parquet
if [ "$parquet" = 1 ]; then
    run 1 no --data x.parquet --max-steps 1
    complains "x.parquet: no Parquet file: it does not begin with PAR1"
    cp "$SOURCE/tests/golden/parquet/flat-snappy.parquet" .
    run 0 no --data flat-snappy.parquet --max-steps 1
    run 1 no --data "$SOURCE/tests/golden/parquet/nested-snappy.parquet" --max-steps 1
    complains "nested-snappy.parquet: row 1: 'messages' is missing"
    expect 0 sifr data inspect --model model --data chats.parquet --samples 1
    grep -q '^⟦red' out || { cat out; fail "no mask"; }
else
    run 2 no --data x.parquet --max-steps 1
    complains "Parquet is not read; convert it"
fi
echo '{"sifr": {"dataset": [{"path": "chats.json", "wieght": 1}]}}' >wrong.json
run 2 no --config wrong.json
complains 'sifr.dataset[0].wieght is unknown; did you mean weight'
echo '{"sifr": {"dataset": [{"path": "chats.json", "weight": 0}]}}' >wrong.json
run 2 no --config wrong.json
complains 'sifr.dataset[0].weight must be a number above 0'
rm model/chat_template.jinja
run 2 no --data chats.jsonl --max-steps 1
complains "rows of messages need the chat template of the model"

# --- a look at the rows ---
cp tuned/chat_template.jinja model/
expect 0 sifr data inspect --model model --data chats.jsonl --samples 1 --seq-length 20
grep -q '^⟦re⟧⟪d<|im_end|>' out || { cat out; fail "no mask"; }
grep -q 'at seq_length 20: ' out || fail "no cut"
expect 0 sifr data inspect --model model --data chats.jsonl --samples 1 --color always
grep -q "$(printf '\033')\[0;1;32mred" out || { cat out; fail "no colour"; }
expect 0 sifr data inspect --model model --data chats.jsonl --samples 1 --tokens --color never
grep -qE '^ +[0-9]+  ⟦<\|im_end\|>⟧$' out && grep -qE '^ +[0-9]+  \\n$' out || { cat out; fail "no tokens"; }
echo '{"text": "not \u001b[31m red, \u009b31m red"}' >control.jsonl
expect 0 sifr data inspect --model model --data control.jsonl
grep -qF '\x1b[31m red, \xc2\x9b31m red' out || { cat out; fail "control characters"; }
expect 0 sifr data inspect --model model --data chats.jsonl --json
[ "$(field rows)" = 48 ] || fail "$(cat out)"
