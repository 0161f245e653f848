# `sifr eval`, `sifr generate`, `sifr plan`: bad arguments and files, each one line and the right
# exit code; streams, seeds and text as data.
fail() { echo "$1" >&2; cat out err >&2; exit 1; }
# expect CODE ARGUMENT…: runs sifr, with its output in `out` and its errors in `err`
expect() {
    local want=$1 code=0
    shift
    "$SIFR" "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] || fail "$*: exit code $code, not $want"
    [ "$want" = 0 ] || [ "$(wc -l <err)" = 1 ] || fail "$*: an error is one line"
}
says() { grep -qE -- "$1" out || fail "no line like: $1"; }
complains() { grep -qE -- "$1" err || fail "no error like: $1"; }

mkdir tmp
export TMPDIR=$PWD/tmp
gpt2=$SOURCE/tests/golden/models/gpt2
llama=$SOURCE/tests/golden/models/llama3
cat "$SOURCE"/docs/*.md >text.txt

# --- eval ---
expect 0 eval --model "$llama" --data text.txt --seq-length 32 --max-windows 5
says '^loss [0-9.]+, perplexity [0-9.]+ over 160 tokens in 5 windows of 32 \(bf16\)$'
expect 0 eval --model "$llama" --data text.txt --seq-length 32 --max-windows 7 --batch-size 3 --json
says '"windows": 7'
says '"tokens": 224'
[ -z "$(ls tmp)" ] || fail "tokens left behind"
expect 0 eval --model "$llama" --data text.txt --seq-length 32 --max-windows 7 --threads 1 --json
one=$(grep '"loss"' out)
expect 0 eval --model "$llama" --data text.txt --seq-length 32 --max-windows 7 --threads 3 --json
[ "$(grep '"loss"' out)" = "$one" ] || fail "the loss depends on threads"
printf 'A few words' >short.txt
expect 1 eval --model "$llama" --data short.txt --seq-length 48
complains 'too few for a window of 48'
expect 1 eval --model "$llama" --data nothing-here --seq-length 16
complains 'nothing-here'
expect 2 eval --model "$gpt2" --data text.txt --seq-length 5000 --max-windows 1
complains 'learned positions for 64 only'
expect 2 eval --model "$llama" --data text.txt
complains 'seq-length'
expect 2 eval --model "$llama" --data text.txt --seq-length 0
complains 'at least one token'
expect 2 eval --model "$llama" --data text.txt --seq-length 16 --precision fp8
complains '--precision fp8 is not supported \(supported: fp32, bf16, fp16\)'
expect 1 eval --model nowhere --data text.txt --seq-length 16
complains 'nowhere'
cp -r "$llama" damaged
chmod -R u+w damaged
head -c 1000 "$llama/model.safetensors" >damaged/model.safetensors
expect 1 eval --model damaged --data text.txt --seq-length 16
complains 'model.safetensors'

expect 2 eval --model "$llama" --data text.txt --seq-length 16 --batch-size 0
complains '--batch-size 0: a batch needs at least one window'
# Weights that are not numbers: an error, not a loss of nan.
cp -r "$llama" nan
chmod -R u+w nan
size=$(stat -c %s nan/model.safetensors)
printf '\377\177' | dd of=nan/model.safetensors bs=1 seek=$((size - 2)) conv=notrunc status=none
expect 1 eval --model nan --data text.txt --seq-length 16 --max-windows 3
complains '^sifr eval: nan: the loss is not a number within the first [0-9]+ tokens'
[ ! -s out ] || fail "a result beside the error"
# Records are not text, as far as their names say: each is a sequence of its own.
printf '{"text": "a"}\n' >records.jsonl
expect 1 eval --model "$llama" --data records.jsonl --seq-length 1
complains '^sifr eval: records.jsonl: no row is left: 1 have nothing to learn'
# A layer that config.json does not have is left out, and said.
cp -r "$llama" longer
chmod -R u+w longer
layers=$(sed -n 's/.*"num_hidden_layers": \([0-9]*\).*/\1/p' longer/config.json)
sed -i "s/\"num_hidden_layers\": [0-9]*/\"num_hidden_layers\": $((layers - 1))/; /\"layer_types\"/,/\]/d" longer/config.json
expect 0 eval --model longer --data text.txt --seq-length 16 --max-windows 3
complains "warning: [0-9]+ tensors ignored, model.layers.$((layers - 1)).[a-z_.]+ first: .*neither read"
expect 0 generate --model longer --prompt hills --max-new-tokens 1
complains 'warning: [0-9]+ tensors ignored'

# --- generate ---
expect 0 generate --model "$llama" --prompt 'hills in the' --max-new-tokens 6
says '^hills in the'
expect 0 generate --model "$llama" --prompt 'hills in the' --max-new-tokens 12 --json
greedy=$(sed -n '/"ids"/,/]/p' out)
expect 0 generate --model "$llama" --prompt 'hills in the' --max-new-tokens 12 --json --temperature 0
[ "$(sed -n '/"ids"/,/]/p' out)" = "$greedy" ] || fail "temperature 0 is not the default"
expect 0 generate --model "$llama" --prompt 'hills in the' --max-new-tokens 12 --json --top-k 1
[ "$(sed -n '/"ids"/,/]/p' out)" = "$greedy" ] || fail "top-k 1 is not greedy"
draw() {
    expect 0 generate --model "$llama" --prompt 'hills in the' --max-new-tokens 12 --json "$@"
    sed -n '/"ids"/,/]/p' out
}
[ "$(draw --seed 1)" = "$(draw --seed 1)" ] || fail "a seed does not repeat itself"
[ "$(draw --seed 1)" = "$(draw --seed 1 --temperature 1 --threads 1)" ] || fail "threads change a draw"
[ "$(draw --seed 1)" != "$(draw --seed 2)" ] || fail "two seeds, one text"
[ "$(draw --seed 1)" != "$greedy" ] || fail "a seed does not draw"

# generation_config.json says what no flag does; flags win.
cp -r "$llama" told
chmod -R u+w told
told() { # GENERATION_CONFIG ARGUMENT…: the ids
    printf '%s' "$1" >told/generation_config.json
    shift
    expect 0 generate --model told --prompt 'hills in the' --json "$@"
    sed -n '/"ids"/,/]/p' out
}
[ "$(told '{"do_sample": true}' --max-new-tokens 12)" = "$(draw --top-k 50)" ] ||
    fail "do_sample does not draw among 50"
[ "$(told '{"do_sample": true, "temperature": 3.0, "top_k": 0, "top_p": 0.9}' --max-new-tokens 12)" = \
    "$(draw --temperature 3 --top-p 0.9)" ] || fail "the file's temperature and top_p"
[ "$(told '{"do_sample": true, "temperature": 3.0, "top_k": 7}' --max-new-tokens 12 --temperature 2 \
    --top-k 9 --top-p 0.8)" = "$(draw --temperature 2 --top-k 9 --top-p 0.8)" ] || fail "flags do not win"
[ "$(told '{"do_sample": true}' --max-new-tokens 12 --temperature 0)" = "$greedy" ] || fail "not greedy"
[ "$(told '{"temperature": 0.0, "top_k": 3}' --max-new-tokens 12)" = "$greedy" ] || fail "do_sample false"
first=$(told '{"max_new_tokens": 5}' | tr -dc '0-9 ' | wc -w)
[ "$first" = 5 ] || fail "max_new_tokens: $first tokens"
prompt=$(sed -n '/"prompt_ids"/,/]/p' out | tr -dc '0-9 ' | wc -w)
[ "$(told "{\"max_length\": $((prompt + 3))}" | tr -dc '0-9 ' | wc -w)" = 3 ] || fail "max_length"
[ "$(told '{"max_new_tokens": 5}' --max-new-tokens 4 | tr -dc '0-9 ' | wc -w)" = 4 ] || fail "--max-new-tokens"
printf '{"max_length": 2}' >told/generation_config.json
expect 2 generate --model told --prompt 'hills in the hills'
complains 'the prompt has [0-9]+ tokens, and "max_length" of generation_config.json is 2; give --max-new'
third=$(told '{}' --max-new-tokens 12 | tr -dc '0-9 ' | awk '{ print $3 }')
told "{\"eos_token_id\": [1000, $third]}" --max-new-tokens 12 >ids
[ "$(tr -dc '0-9 ' <ids | awk '{ print $NF }')" = "$third" ] || fail "no end at the second of two eos"
says '"stopped_by": "eos"'
told '{"typical_p": 0.9, "num_beams": 1, "eta_cutoff": 0.1}' --max-new-tokens 2 >ids
complains 'warning: generation_config.json: not supported yet and ignored: typical_p, eta_cutoff$'
[ "$(told '{"repetition_penalty": 1.5}' --max-new-tokens 12)" = "$(draw --repetition-penalty 1.5 --temperature 0)" ] ||
    fail "the file's repetition_penalty"
[ "$(draw --repetition-penalty 1.5 --temperature 0)" != "$greedy" ] || fail "no penalty"
[ "$(told '{"repetition_penalty": 1.5}' --max-new-tokens 12 --repetition-penalty 1)" = "$greedy" ] ||
    fail "--repetition-penalty does not win"
[ "$(told '{"do_sample": true, "top_k": 0, "min_p": 0.3}' --max-new-tokens 12)" = "$(draw --min-p 0.3)" ] ||
    fail "the file's min_p"
[ "$(draw --min-p 1)" = "$greedy" ] || fail "--min-p 1 is not greedy"
for bad in '{"do_sample": 1}' '{"do_sample": true, "temperature": 0}' '{"eos_token_id": "x"}' \
    '{"do_sample": true, "top_k": -1}' '{"max_new_tokens": 0}' '{"repetition_penalty": 0}' \
    '{"do_sample": true, "min_p": 2}' '{"stop_strings": 3}' '{"stop_strings": [""]}' '[]' '{'; do
    echo "$bad" >told/generation_config.json
    expect 2 generate --model told --prompt a
    complains 'told/generation_config.json'
done
expect 0 generate --model "$llama" --prompt '' --max-new-tokens 2 --json
says '"prompt_ids"'
expect 0 generate --model "$gpt2" --prompt 'hills' --max-new-tokens 0 --json
says '"ids": \[\]'
expect 0 generate --model "$gpt2" --prompt 'hills' # as many as there are positions
expect 2 generate --model "$gpt2" --prompt 'hills' --max-new-tokens 64
complains 'positions for [0-9]+ more'
expect 2 generate --model "$gpt2" --prompt "$(head -c 2000 text.txt)"
complains 'give a shorter prompt'
expect 3 generate --model "$llama" --prompt 'hills' --max-new-tokens 1e9
complains '^sifr generate: memory: the run takes [0-9.]+ GiB .*; ask for fewer tokens$'
expect 2 generate --model "$gpt2" --prompt a --temperature -1
complains '--temperature -1'
expect 2 generate --model "$gpt2" --prompt a --temperature nan
expect 2 generate --model "$gpt2" --prompt a --top-p 0
complains '--top-p 0'
expect 2 generate --model "$gpt2" --prompt a --top-p 1.5
expect 2 generate --model "$gpt2" --prompt a --temperature 0 --top-k 5
complains 'have no meaning'
expect 2 generate --model "$gpt2"
complains 'give --prompt TEXT or --prompts FILE'
expect 2 generate --model "$gpt2" --prompt a --min-p 2
complains '--min-p 2'
expect 2 generate --model "$gpt2" --prompt a --repetition-penalty 0
complains '--repetition-penalty 0'
expect 2 generate --model "$gpt2" --prompt a --stop ''
complains '--stop: an empty text'

# Stop strings: the text ends before the first; ids are those made.
expect 0 generate --model "$llama" --prompt 'hills in the' --max-new-tokens 12 --json
text=$(sed -n 's/.*"text": "\(.*\)",$/\1/p' out)
[ "${#text}" -gt 8 ] || fail "too little text to stop in: $text"
stop=${text:3:3}
before=${text%%"$stop"*}
expect 0 generate --model "$llama" --prompt 'hills in the' --max-new-tokens 12 --json --stop never "$stop"
says '"stopped_by": "stop"'
[ "$(sed -n 's/.*"text": "\(.*\)",$/\1/p' out)" = "$before" ] || fail "not the text before '$stop'"
expect 0 generate --model "$llama" --prompt 'hills in the' --max-new-tokens 12 --stop "$stop"
[ "$(cat out)" = "hills in the$before" ] || fail "another text on the terminal"
told "{\"stop_strings\": \"$stop\"}" --max-new-tokens 12 >ids
says '"stopped_by": "stop"'

# Several prompts: each as if it were alone.
printf 'hills in the\nA few\r\n\nhills in the' >prompts
expect 0 generate --model "$llama" --prompts prompts --max-new-tokens 12 --json
[ "$(wc -l <out)" = 4 ] || fail "not an object for each of four prompts"
cp out several
for line in 1 2 3 4; do
    prompt=$(sed -n "${line}p" prompts | tr -d '\r')
    expect 0 generate --model "$llama" --prompt "$prompt" --max-new-tokens 12 --json
    alone=$(sed -n '/"ids"/,/]/p' out | tr -dc '0-9,')
    [ "$(sed -n "${line}s/.*\"ids\":\[\([0-9,]*\)\].*/\1/p" several),"  = "$alone" ] || fail "prompt $line: other ids"
done
# Three at a time: the same texts, in the order of the prompts.
expect 0 generate --model "$llama" --prompts prompts --max-new-tokens 12 --json --batch-size 3
cmp <(sed 's/"seconds.*//' several) <(sed 's/"seconds.*//' out) || fail 'a batch has other texts'
expect 0 generate --model "$llama" --prompts prompts --max-new-tokens 12 --stop "$stop"
cp out several
expect 0 generate --model "$llama" --prompts prompts --max-new-tokens 12 --stop "$stop" --batch-size 9
cmp several out || fail 'a batch shows other texts'
expect 2 generate --model "$llama" --prompts prompts --batch-size 0
complains '--batch-size 0: must be in 1'
# Drawn: equal lines differ, samples of a line differ, and each is what it is alone.
printf 'hills in the\nhills in the\n' >equal
drawn=(--temperature 2 --seed 7 --max-new-tokens 12 --json)
expect 0 generate --model "$llama" --prompts equal "${drawn[@]}"
cp out lines
ids() { sed -n "$1s/.*\"ids\":\[\([0-9,]*\)\].*/\1/p" "$2"; }
[ "$(ids 1 lines)" != "$(ids 2 lines)" ] || fail 'equal lines have the same draws'
expect 0 generate --model "$llama" --prompts equal "${drawn[@]}" --samples 2
cp out samples
[ "$(sed 's/.*"sample":\([0-9]*\).*/\1/' samples | tr -d '\n')" = 0101 ] || fail 'not two samples of two lines'
[ "$(ids 1 samples) $(ids 3 samples)" = "$(ids 1 lines) $(ids 2 lines)" ] || fail 'a sample changed another'
[ "$(for line in 1 2 3 4; do ids $line samples; done | sort -u | wc -l)" = 4 ] || fail 'two samples are one text'
expect 0 generate --model "$llama" --prompts equal "${drawn[@]}" --samples 2 --batch-size 3
[ "$(ids 1 samples) $(ids 2 samples)" = "$(ids 1 out) $(ids 2 out)" ] || fail 'a batch draws others'
expect 0 generate --model "$llama" --prompt 'hills in the' --samples 3 --temperature 2 --max-new-tokens 2
[ "$(grep -c '^hills in the' out)" = 3 ] || fail 'not three texts'
expect 2 generate --model "$llama" --prompt a --samples 2
complains '--samples 2: at temperature 0 all texts of a prompt are the same; give --temperature'
expect 2 generate --model "$llama" --prompt a --samples 0
complains '--samples 0: must be in 1'
cp -r "$llama" dynamic
sed -i 's/"rope_type": "[a-z0-9]*"/"rope_type": "dynamic"/' dynamic/config.json
expect 2 generate --model dynamic --prompts prompts --max-new-tokens 5 --batch-size 2
complains 'angles depend on the length of the sequence.*one at a time'
expect 0 generate --model dynamic --prompts prompts --max-new-tokens 5
expect 2 generate --model "$llama" --prompts prompts --prompt a
complains 'not both'
: >nothing
expect 2 generate --model "$llama" --prompts nothing
complains 'nothing: the file is empty'
expect 1 generate --model "$llama" --prompts not-there
complains 'not-there'
expect 1 generate --model "$SOURCE/tests/golden/models/llama2" --prompt a
complains 'tokenizer.json'
code=0
"$SIFR" generate --model "$gpt2" --prompt a >/dev/full 2>err || code=$?
[ "$code" = 1 ] || fail "a full disk: exit code $code"
[ "$(wc -l <err)" = 1 ] || fail "a full disk: one line"

# --- plan: config.json is enough ---
mkdir only
cp "$llama/config.json" only
expect 0 plan --model only --seq-length 32 --per-device-train-batch-size 2
says '^activations +[0-9]+'
says '^The peak is at '
expect 0 plan --model only --seq-length 32 --per-device-train-batch-size 2 --dump
says '^ +0 compute count'
says ' backward +layers.0 +#0 attention'
grep -c . out >lines
expect 0 plan --model only --seq-length 32 --per-device-train-batch-size 2 --json
says "\"instructions\": $(cat lines)"
says '"peak_bytes": [0-9]+'
expect 0 plan --model only --json --gradient-accumulation-steps 4 --per-device-train-batch-size 1 \
    --seq-length 32 --bf16 --dump
says '"step_order": "batch"'
says '"precision": "bf16"'
says '"schedule"'
expect 2 plan --model only --gradient-accumulation-steps 0
expect 2 plan
complains '--model DIR is needed'
expect 2 plan --model "$gpt2" --seq-length 4096
complains 'learned positions for 64'
# What does not fit is said with the numbers, and planning it takes nothing.
sed 's/"hidden_size": [0-9]*/"hidden_size": 65536/; s/"intermediate_size": [0-9]*/"intermediate_size": 262144/;
     s/"vocab_size": [0-9]*/"vocab_size": 128000/; s/"head_dim": [0-9]*/"head_dim": 256/; s/"num_attention_heads": [0-9]*/"num_attention_heads": 256/' \
    "$llama/config.json" >only/config.json
expect 0 plan --model only --seq-length 32 --per-device-train-batch-size 1
says '^It does not fit on this machine\. memory: the run takes [0-9.]+ [TG]iB'

# --- a model that labels texts ---
sed 's/LlamaForCausalLM/LlamaForSequenceClassification/; s/"pad_token_id": null/"pad_token_id": 0/' \
    "$llama/config.json" >classes.json
expect 0 init --config classes.json --tokenizer "$llama" --output classes
expect 2 generate --model classes --prompt hills
complains 'classes: a model for sequence_classification does not continue texts; one for causal_lm'
expect 2 eval --model classes --data text.txt --seq-length 16
complains 'text.txt: rows are read from files named .csv, .tsv, .json, .jsonl or .conll'
expect 2 train --model classes --data text.txt --output trained --max-steps 1 --seq-length 16
complains 'text.txt: rows are read from files named .csv, .tsv, .json, .jsonl or .conll'
expect 2 export --format gguf classes classes.gguf
complains 'architecture LlamaForSequenceClassification is not supported with --format gguf'
