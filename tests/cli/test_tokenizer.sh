# sifr tokenizer: train, encode, decode, as a user runs them.
fail() { echo "$1" >&2; exit 1; }
# expect CODE COMMAND…: runs it, with its output in `out` and its errors in `err`
expect() {
    local want=$1 code=0
    shift
    "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] || { cat out err; fail "$*: exit code $code, not $want"; }
}

mkdir -p text/inner
for i in 1 2 3 4 5 6 7 8; do
    printf 'It was the %sth day, and the people of the town said: “it’s çok güzel”.\n' $i
    printf 'for (int i = 0; i < %s; i++) { sum += values[i]; }\n\n' $i
done >text/a.txt
printf 'Съешь же ещё этих мягких французских булок, да выпей чаю' >text/inner/b.txt
: >text/empty.txt

expect 0 "$SIFR" tokenizer train --vocab-size 400 --data text --output bpe --model-max-length 128
grep -q '^400 tokens from .* of text in 2 documents: bpe/tokenizer.json$' out || fail "$(cat out)"
grep -q 'warning: 1 empty file left out' err || fail "$(cat err)"
grep -q '"model_max_length": 128' bpe/tokenizer_config.json || fail "no model_max_length"
[ "$(ls bpe)" = "tokenizer.json
tokenizer_config.json" ] || fail "$(ls bpe)"

# The same again, and from a pattern: the same files.
expect 0 "$SIFR" tokenizer train --vocab-size 400 --data 'text/*.txt' text/inner --output again \
    --model-max-length 128 --json
grep -q '^{"vocab_size": 400, "documents": 2, ' out || fail "$(cat out)"
cmp bpe/tokenizer.json again/tokenizer.json

# Text to ids and back, in both forms; nothing is added to the text.
"$SIFR" tokenizer encode --tokenizer bpe --json <text/a.txt >ids.json
head -c 9 ids.json | grep -q '{"ids": \[' || fail "$(head -c 80 ids.json)"
"$SIFR" tokenizer decode --tokenizer bpe <ids.json | cmp - text/a.txt
"$SIFR" tokenizer encode --tokenizer bpe/tokenizer.json <text/inner/b.txt >ids
"$SIFR" tokenizer decode --tokenizer bpe <ids | cmp - text/inner/b.txt
[ "$(tr -cd ' ' <ids | wc -c)" -lt 99 ] || fail "no merges in $(cat ids)"
[ "$(printf '<|endoftext|>' | "$SIFR" tokenizer encode --tokenizer bpe)" = 0 ] || fail "special"
printf 'say "yes"\n' | "$SIFR" tokenizer encode --tokenizer bpe |
    "$SIFR" tokenizer decode --tokenizer bpe --json >out
[ "$(cat out)" = '{"text": "say \"yes\"\n"}' ] || fail "JSON: $(cat out)"
[ -z "$(echo 0 | "$SIFR" tokenizer decode --tokenizer bpe --skip-special-tokens)" ] || fail "skip"
[ "$(echo 0 | "$SIFR" tokenizer decode --tokenizer bpe)" = '<|endoftext|>' ] || fail "not skipped"
[ "$(printf '' | "$SIFR" tokenizer encode --tokenizer bpe --json)" = '{"ids": []}' ] || fail "empty"

# Invalid UTF-8 is said; other splits are there; too few pairs are said.
printf 'a\377b' | "$SIFR" tokenizer encode --tokenizer bpe >ids 2>err
grep -q 'warning: 1 invalid UTF-8 sequence read as U+FFFD' err || fail "$(cat err)"
for split in llama3 qwen2; do
    expect 0 "$SIFR" tokenizer train --vocab-size 99999 --data text --output $split --split $split
    grep -q 'the text has enough for [0-9]* tokens only' err || fail "$(cat err)"
    "$SIFR" tokenizer encode --tokenizer $split <text/a.txt |
        "$SIFR" tokenizer decode --tokenizer $split | cmp - text/a.txt
done

# The other types: Unigram gives the text back (but for what NFKC and Metaspace change), WordPiece
# its words.
for type in unigram wordpiece; do
    expect 0 "$SIFR" tokenizer train --type $type --vocab-size 300 --data text --output $type
    grep -q "tokens from .* of text in 2 documents: $type/tokenizer.json" out || fail "$(cat out)"
    expect 0 "$SIFR" tokenizer train --type $type --vocab-size 300 --data text --output again \
        --overwrite
    cmp $type/tokenizer.json again/tokenizer.json
    printf 'people of the town' | "$SIFR" tokenizer encode --tokenizer $type >ids
    [ "$("$SIFR" tokenizer decode --tokenizer $type <ids)" = 'people of the town' ] ||
        fail "$type: $("$SIFR" tokenizer decode --tokenizer $type <ids)"
done
[ "$(printf 'Town' | "$SIFR" tokenizer encode --tokenizer wordpiece)" = 1 ] || fail "not [UNK]"
expect 0 "$SIFR" tokenizer train --type wordpiece --lowercase --vocab-size 300 --data text \
    --output lower
[ "$(printf 'TOWN' | "$SIFR" tokenizer encode --tokenizer lower)" = \
    "$(printf 'town' | "$SIFR" tokenizer encode --tokenizer lower)" ] || fail "not lowercase"

# What is wrong is said in one line, and nothing is written.
refuse() {
    local want=$1 words=$2
    shift 2
    expect "$want" "$@" </dev/null
    [ "$(wc -l <err)" = 1 ] || fail "not one line: $(cat err)"
    grep -q "$words" err || fail "no '$words' in: $(cat err)"
}
refuse 2 'vocab size 200' "$SIFR" tokenizer train --vocab-size 200 --data text --output new
refuse 1 'nowhere' "$SIFR" tokenizer train --vocab-size 300 --data nowhere --output new
refuse 2 '"bert" is not supported yet' "$SIFR" tokenizer train --vocab-size 300 --data text --output new \
    --split bert
refuse 2 '"bert" is not supported yet' "$SIFR" tokenizer train --vocab-size 300 --data text --output new \
    --type bert
refuse 2 'only bpe has one' "$SIFR" tokenizer train --vocab-size 300 --data text --output new \
    --type unigram --split gpt2
refuse 2 'vocab size 40: the text has' "$SIFR" tokenizer train --vocab-size 40 --data text --output new \
    --type unigram
refuse 2 '' "$SIFR" tokenizer train --data text --output new
before=$(cat bpe/* | sha256sum)
refuse 2 'bpe/tokenizer.json: already exists; .*--overwrite' "$SIFR" tokenizer train \
    --vocab-size 300 --data text --output bpe
[ "$(cat bpe/* | sha256sum)" = "$before" ] || fail "a tokenizer was overwritten"
expect 0 "$SIFR" tokenizer train --vocab-size 300 --data text --output again --overwrite
grep -q '^300 tokens' out || fail "not overwritten: $(cat out)"
# A tokenizer that is larger than the vocabulary belongs to another model.
echo '{"model_type": "llama", "vocab_size": 399, "hidden_size": 16, "intermediate_size": 16,
    "num_hidden_layers": 1, "num_attention_heads": 1, "max_position_embeddings": 64}' >llama.json
refuse 2 'bpe: the tokenizer has 400 tokens, but "vocab_size" in config.json is 399' \
    "$SIFR" init --config llama.json --tokenizer bpe --output new
expect 0 "$SIFR" init --config llama.json --tokenizer again --output model
cp bpe/* model
refuse 1 'model: the tokenizer makes ids up to 399, but the model has rows for only 399' "$SIFR" train \
    --model model --data text/a.txt --output run --per-device-train-batch-size 1
[ ! -e run ] || fail "an output folder was left"
refuse 1 'ids up to 399' "$SIFR" eval --model model --data text/a.txt --seq-length 4
# A folder without tokenizer.json: its other files are read, checked, copied and carried along.
mkdir other
cp "$SOURCE/tests/golden/tokenizer_files/llama.model" other/tokenizer.model
echo '{"tokenizer_class": "LlamaTokenizer", "add_bos_token": true}' >other/tokenizer_config.json
[ "$(printf 'a' | "$SIFR" tokenizer encode --tokenizer other --add-special-tokens | cut -d' ' -f1)" = 1 ] ||
    fail "no begin-of-text token"
refuse 2 'other: the tokenizer has 450 tokens' "$SIFR" init --config llama.json --tokenizer other --output new
sed 's/399/450/' llama.json >larger.json
expect 0 "$SIFR" init --config larger.json --tokenizer other --output spm
"$SIFR" inspect spm >out || fail "inspect"
grep -q 'tokenizer: spm/tokenizer.model' out || fail "$(cat out)"
expect 0 "$SIFR" train --model spm --data text/a.txt --output spm-run --seq-length 16 --max-steps 1 \
    --per-device-train-batch-size 1
cmp other/tokenizer.model spm-run/tokenizer.model
expect 0 "$SIFR" generate --model spm-run --prompt 'It was' --max-new-tokens 2
refuse 2 'class "XLNetTokenizer" is not supported yet' bash -c "echo '{\"tokenizer_class\": \"XLNetTokenizer\"}' \
    >other/tokenizer_config.json; exec '$SIFR' tokenizer encode --tokenizer other"
# What no disk has room for is not begun.
sed 's/"hidden_size": 16/"hidden_size": 262144/; s/: 399/: 2147483647/; s/heads": 1/heads": 8/' llama.json >large.json
refuse 3 'new: the weights take .* PiB, but only .* are free' \
    bash -c "ulimit -f 100; exec '$SIFR' init --config large.json --output new"
[ ! -e new ] || fail "an output folder was made"
refuse 1 'cannot open' "$SIFR" tokenizer encode --tokenizer nowhere
refuse 1 'tokenizer.json' "$SIFR" tokenizer encode --tokenizer text
refuse 2 '' "$SIFR" tokenizer encode --tokenizer text/a.txt
refuse 2 'did you mean' "$SIFR" tokenizer encod
code=0
echo '1 2 zwei' | "$SIFR" tokenizer decode --tokenizer bpe >out 2>err || code=$?
[ "$code" = 1 ] && grep -q 'byte 4' err || fail "$code: $(cat err)"
code=0
echo '1 400' | "$SIFR" tokenizer decode --tokenizer bpe >out 2>err || code=$?
[ "$code" = 1 ] && grep -q '400 is not a token id' err || fail "$code: $(cat err)"
code=0
echo '99999999999999999999' | "$SIFR" tokenizer decode --tokenizer bpe >out 2>err || code=$?
[ "$code" = 1 ] && [ ! -s out ] || fail "$code: $(cat err)"
