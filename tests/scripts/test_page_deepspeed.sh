# label: short
# docs/come-from-deepspeed.md, with the checkpoint of tests/golden/deepspeed/stage3: of a model of
# one layer, whose vocabulary has 23 words.
# timeout: 300, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/ranks.sh"
. "$SOURCE/tests/support/page.sh"
mkdir -p run/checkpoint-500
cp -r "$SOURCE"/tests/golden/deepspeed/{stage3/.,config.json} run/checkpoint-500
words="[UNK] <s> </s> the cat sat on a mat and saw that dog run over my big red house while we ate ."
awk -v words="$words" 'BEGIN {
    n = split(words, word, " ")
    printf "{\"version\": \"1.0\", \"added_tokens\": ["
    for (i = 0; i < 3; i++)
        printf "%s{\"id\": %d, \"content\": \"%s\", \"special\": true}", i ? ", " : "", i, word[i + 1]
    printf "], \"pre_tokenizer\": {\"type\": \"Whitespace\"}, \"decoder\": {\"type\": "
    printf "\"WordPiece\", \"prefix\": \"##\", \"cleanup\": true}, \"model\": {\"type\": "
    printf "\"WordPiece\", \"unk_token\": \"[UNK]\", \"continuing_subword_prefix\": \"##\", "
    printf "\"max_input_chars_per_word\": 100, \"vocab\": {"
    for (i = 0; i < n; i++) printf "%s\"%s\": %d", i ? ", " : "", word[i + 1], i
    print "}}}"
}' >run/checkpoint-500/tokenizer.json
echo '{"bos_token": "<s>", "eos_token": "</s>"}' >run/checkpoint-500/tokenizer_config.json
for i in $(seq 60); do echo "${words#* * * }"; done >books.txt
page come-from-deepspeed
