# shellcheck shell=bash
# Sourced by compare-bits.sh: what all topics read, made by BASE's program in $work/made.
# shellcheck disable=SC2154,SC2086
mkdir "$work/made"
cd "$work/made" || exit
make() { "$@" >"$work/log" 2>&1 || { tail "$work/log" >&2; exit 1; }; }
head -c 24000 "$builds/tree/docs/config.md" >text
head -c 3000 "$builds/tree/docs/architecture.md" >held
cp "$tree/examples/eight_cores.json" .
make "$old" tokenizer train --vocab-size 300 --data text --output tok
make "$old" tokenize --tokenizer tok --data text --output store
model() { # NAME JSON [TOKENIZER]
    echo "$2" >"$1.json"
    make "$old" init --config "$1.json" --tokenizer "${3:-tok}" --output "$1" --seed 3
}
llama='"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
    "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128'
model untied "{$llama, \"tie_word_embeddings\": false}"
model tied "{$llama, \"tie_word_embeddings\": true}"
model gpt2 '{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 300,
    "n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 128}'
# Encoders, over words of letters.
fail() { echo "$1" >&2; exit 1; }
# shellcheck source-path=SCRIPTDIR/../.. source=tests/support/words.sh
. "$tree/tests/support/words.sh" # labels.tsv, text.txt, tokenizer FOLDER
mkdir words
echo '{"pad_token_id": 0}' >words/config.json
sed -i 's/, /,\n /g' words/config.json
tokenizer words
rm words/config.json
sizes='"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 64, "pad_token_id": 0'
model bert "{\"model_type\": \"bert\", \"architectures\": [\"BertForMaskedLM\"], $sizes}" words
model deberta "{\"model_type\": \"deberta-v2\", \"architectures\": [\"DebertaV2ForMaskedLM\"], $sizes,
    \"relative_attention\": true, \"position_buckets\": 8, \"pos_att_type\": \"c2p|p2c\",
    \"share_att_key\": true, \"norm_rel_ebd\": \"layer_norm\", \"position_biased_input\": false,
    \"conv_kernel_size\": 3, \"conv_act\": \"gelu\"}" words
# Rows.
awk 'BEGIN { for (i = 0; i < 12; i++) {
    printf "{\"messages\": [{\"role\": \"user\", \"content\": \"Say %d\"}, ", i
    printf "{\"role\": \"assistant\", \"content\": \"It is %d%s.\"}]}\n", i, i % 3 ? " and more" : "" } }' >chats.jsonl
awk 'BEGIN { for (i = 0; i < 12; i++)
    printf "{\"prompt\": \"Say %d\", \"completion\": \" %d\"}\n", i, i * i }' >completions.jsonl
awk 'BEGIN { for (i = 0; i < 12; i++)
    printf "{\"prompt\": \"Say %d\", \"chosen\": \" %d is it\", \"rejected\": \" no%d\"}\n", i, i, i % 5 }' >pairs.jsonl
awk 'BEGIN { print "label\tsentence1\tsentence2"; split("yes no maybe", label, " ")
    for (i = 0; i < 24; i++) print label[i % 3 + 1] "\ta b c " substr("defg", i % 4 + 1, 1) "\tx y" }' >twos.tsv
awk 'BEGIN { print "text,label"
    for (i = 0; i < 24; i++) print (i % 2 ? "g o d" : "b a d") " f," (i % 2 ? 1.5 : -1) }' >numbers.csv
awk 'BEGIN { for (i = 0; i < 24; i++) { a = i % 2; b = int(i / 2) % 2
    print "{\"text\": \"t h e" (a ? " n" : "") (b ? " r" : "") "\", \"labels\": [" \
        (a ? "\"nice\"" : "") (a && b ? ", " : "") (b ? "\"red\"" : "") "]}" } }' >several.jsonl
awk 'BEGIN { for (i = 0; i < 24; i++)
    printf "t\tO\nr\tB-COL\nb\tI-COL\nf\tO\n%s\tO\n\n", i % 2 ? "w" : "v" }' >tags.conll
# What a model is distilled from.
for k in 4 300; do
    make "$old" score --model tied --data completions.jsonl --seq-length 32 --output top-$k --top-k $k \
        --temperature 2 --threads 1
done
