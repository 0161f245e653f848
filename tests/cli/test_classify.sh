# label: short
# Classifiers as a user trains them: from a file of labelled rows to a folder that scores them.
# timeout: 300
. "$SOURCE/tests/support/expect.sh"
sifr() { "$SIFR" "$@"; }
says() { grep -qE "$1" out || { cat out err; fail "no '$1'"; }; }
complains() { [ "$(wc -l <err)" = 1 ] && grep -qF "$1" err || { cat err; fail "no '$1'"; }; }
field() { sed -n "s/^ *\"$1\": \([^,]*\),*$/\1/p" out; }

awk 'BEGIN { for (i = 0; i < 400; i++) print "good bad food was were day the a very red big one two" }' >text
sifr tokenizer train --vocab-size 280 --data text --output tok >/dev/null 2>&1
cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 280,
 "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": false,
 "pad_token_id": 0}
J
sifr init --config tiny.json --tokenizer tok --output model --seed 3 >/dev/null
run() { # CODE OUTPUT DATA OPTION…
    local code=$1 output=$2 data=$3
    shift 3
    rm -rf "$output"
    expect "$code" sifr train --model model --data "$data" --output "$output" --seq-length 24 \
        --per-device-train-batch-size 4 --learning-rate 3e-3 --threads 1 "$@"
}

# --- pairs, with three labels ---
awk 'BEGIN {
    print "label\tsentence1\tsentence2"
    split("good bad very", word, " "); split("yes no maybe", label, " ")
    for (i = 0; i < 48; i++) {
        k = i % 3 + 1
        print label[k] "\tthe food was " word[k] "\ta red day " i
    }
}' >pairs.tsv
run 0 pairs pairs.tsv --task sequence_classification --eval-data pairs.tsv --max-steps 60 \
    --save-steps 30 --eval-steps 30
grep -q "pairs.tsv: text from 'sentence1' and 'sentence2', labels from 'label'" err out ||
    fail "the columns are not said"
says 'step 60/60  eval loss [0-9.]+  accuracy 1\.0000  f1_macro 1\.0000 .*\(48 examples'
grep -q '"LlamaForSequenceClassification"' pairs/config.json || fail "architectures"
tr -d ' \n' <pairs/config.json | grep -q '"id2label":{"0":"maybe","1":"no","2":"yes"}' ||
    fail "id2label: $(cat pairs/config.json)"
grep -q '"eval_accuracy":1.0' pairs/metrics.jsonl || fail "no accuracy in metrics.jsonl"
head -1 pairs/metrics.csv | grep -q eval_matthews_correlation || fail "metrics.csv"
whole=$(sha256sum <pairs/model.safetensors)
expect 0 sifr eval --model pairs --data pairs.tsv --seq-length 24 --precision fp32 --json
[ "$(field accuracy)" = 1.0 ] || fail "eval: $(cat out)"

# The plan is that of the head for the data's labels, to the byte.
expect 0 sifr plan --model model --data pairs.tsv --task sequence_classification --seq-length 24 \
    --per-device-train-batch-size 4 --threads 1 --json
planned=$(field peak_bytes | head -n 1)
run 0 one pairs.tsv --task sequence_classification --max-steps 1 --json
[ "$(field planned_bytes)" = "$planned" ] || fail "planned $planned, then $(field planned_bytes)"

# A packed file has the same labels.
gzip -c pairs.tsv >pairs.tsv.gz
run 0 packed pairs.tsv.gz --task sequence_classification --max-steps 1
cmp packed/model.safetensors one/model.safetensors
cmp packed/config.json one/config.json

# It answers: by a text, by lines, and by rows, which need no label.
expect 0 sifr classify --model pairs --text "the food was bad" --pair "a red day 7" --precision fp32
says '^no 0\.9[0-9]+$'
one=$(cat out)
printf 'the food was good\ta red day 3\n\nthe food was bad\ta red day 7\n' >lines
expect 0 sifr classify --model pairs --precision fp32 <lines
[ "$(sed -n 's/ .*//p' out | tr '\n' ' ')" = "yes no " ] || fail "$(cat out), not yes and no"
[ "$(tail -n 1 out | cut -c1-6)" = "$(cut -c1-6 <<<"$one")" ] || fail "$(cat out), by itself $one"
cut -f 2,3 pairs.tsv >unlabelled.tsv
expect 0 sifr classify --model pairs --data unlabelled.tsv --json
[ "$(sed -n 's/.*"label":"\([a-z]*\)".*/\1/p' out)" = "$(tail -n +2 pairs.tsv | cut -f 1)" ] ||
    fail "other labels: $(head -3 out)"
says '^\{"scores":\{"maybe":[0-9.e-]+,"no":[0-9.e-]+,"yes":[0-9.e-]+\},"label":"yes"\}$'
expect 1 sifr classify --model pairs </dev/null
complains 'standard input: no rows'
expect 2 sifr classify --model model --text a
complains 'model: no classifier; train one'
expect 2 sifr classify --model pairs --data pairs.tsv --text-column no
complains "no column is named 'no' (text_column)"
expect 2 sifr classify --model pairs --pair a
complains 'pair: the first text is given by --text'

# What is learned goes on from a checkpoint, and not with other labels or another order of them.
cp -r pairs cut
rm -rf cut/checkpoint-60 cut/model.safetensors
echo checkpoint-30 >cut/latest
run_resume() {
    expect "$1" sifr train --model model --data "$2" --output cut --seq-length 24 --threads 1 \
        --per-device-train-batch-size 4 --learning-rate 3e-3 --task sequence_classification \
        --eval-data pairs.tsv --max-steps 60 --save-steps 30 --eval-steps 30 --resume ${3:-}
}
run_resume 2 pairs.tsv '--labels yes,no,maybe'
grep -q 'made with' err || fail "other labels: $(cat err)"
run_resume 0 pairs.tsv
! grep 'will differ' err || fail "nothing differs: the new head is not the folder's own"
[ "$(sha256sum <cut/model.safetensors)" = "$whole" ] || fail "a resumed run has other weights"

# A head that is there is trained on, with its labels; other labels take a new head.
expect 0 sifr train --model pairs --data pairs.tsv --output again --seq-length 24 --max-steps 2
sed 's/maybe/perhaps/' pairs.tsv >other.tsv
expect 1 sifr train --model pairs --data other.tsv --output never --seq-length 24 --max-steps 2
complains "other.tsv: line 4: 'label' has the label 'perhaps', which the model does not have (it has 3: maybe, no, yes)"
expect 2 sifr train --model pairs --data other.tsv --output never --seq-length 24 --max-steps 2 --labels a,b
complains 'its head has 3 labels, but 2 are given'
expect 0 sifr train --model pairs --data other.tsv --output again2 --seq-length 24 --max-steps 2 --new-head
grep -q perhaps again2/config.json || fail "the new head has no new labels"
[ ! -e never ] || fail "a refused run left its output"

# --- numbers ---
awk 'BEGIN { print "text,label"; for (i = 0; i < 32; i++) print (i % 2 ? "good" : "bad") " food," (i % 2 ? 1.5 : -1) }' >scores.csv
run 0 scores scores.csv --task sequence_classification --problem-type regression --max-steps 60 --eval-data scores.csv
says 'eval loss 0\.0[0-9]+  mse 0\.0[0-9]+  pearson (1\.0000|0\.99[0-9]+)  spearman'
grep -q '"problem_type": "regression"' scores/config.json || fail "problem_type"
expect 0 sifr classify --model scores --text "good food"
awk '{ exit !($1 > 1 && $1 < 2 && NF == 1) }' out || fail "a number near 1.5: $(cat out)"
expect 0 sifr eval --model scores --data scores.csv --seq-length 24 --json
says '"pearson": (1|0\.9)'

# --- several labels of a row ---
awk 'BEGIN { for (i = 0; i < 32; i++) { a = i % 2; b = int(i / 2) % 2
    print "{\"text\": \"the " (a ? "good " : "") (b ? "red " : "") "food\", \"labels\": [" (a ? "\"nice\"" : "") (a && b ? ", " : "") (b ? "\"colour\"" : "") "]}" } }' >several.jsonl
run 0 several several.jsonl --task sequence_classification --problem-type multi_label_classification \
    --max-steps 80 --eval-data several.jsonl
says 'accuracy 1\.0000  f1_micro 1\.0000  f1_macro 1\.0000'

expect 0 sifr classify --model several --text "the good red food"
says '^(nice 0\.[5-9][0-9]+  colour|colour 0\.[5-9][0-9]+  nice) 0\.[5-9][0-9]+$'

# --- tags of words ---
awk 'BEGIN { for (i = 0; i < 32; i++) printf "the\tO\nred\tB-COL\nbig\tI-COL\nfood\tO\n%s\tO\n\n", i % 2 ? "was" : "were" }' >tags.conll
run 0 tags tags.conll --task token_classification --max-steps 40 --eval-data tags.conll
says 'precision 1\.0000  recall 1\.0000  f1 1\.0000  accuracy 1\.0000  \(32 examples'
expect 0 sifr eval --model tags --data tags.conll --seq-length 24 --json
[ "$(field f1)" = 1.0 ] || fail "eval of tags: $(cat out)"
echo "the red big food was" | sifr classify --model tags >out
[ "$(cut -f 2 out | tr '\n' ' ')" = "O B-COL I-COL O O  " ] || fail "tags: $(cat out)"
expect 2 sifr classify --model tags --data tags.conll
complains 'a tagger reads sentences from standard input'

# --- an encoder: masked words from text, then a head for labels in place of theirs ---
cat >bert.json <<'J'
{"model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 120, "hidden_size": 32,
 "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
 "max_position_embeddings": 64, "type_vocab_size": 2, "pad_token_id": 0}
J
sifr init --config bert.json --tokenizer "$SOURCE/tests/golden/examples/wordpiece" --output bert --seed 3 >/dev/null
awk 'BEGIN { for (i = 0; i < 200; i++) print "the river rose after the long rain. she reads a book." }' >words.txt
encode() { # CODE OUTPUT MODEL DATA OPTION…
    local code=$1 output=$2 model=$3 data=$4
    shift 4
    rm -rf "$output"
    expect "$code" sifr train --model "$model" --data "$data" --output "$output" --seq-length 32 \
        --per-device-train-batch-size 8 --learning-rate 3e-3 --threads 1 "$@"
}
encode 0 masked bert words.txt --max-steps 80 --eval-data words.txt --eval-on-start
first=$(sed -n 's/.*"step":0,.*"eval_loss":\([0-9.]*\).*/\1/p' masked/metrics.jsonl)
last=$(sed -n 's/.*"step":80,.*"eval_loss":\([0-9.]*\).*/\1/p' masked/metrics.jsonl)
awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < a / 2) }' || fail "masked words: loss $first to $last"
expect 0 sifr eval --model masked --data words.txt --seq-length 32 --precision fp32 --json
awk -v a="$last" -v b="$(field loss)" 'BEGIN { d = a - b; exit !(d * d < 1e-8) }' ||
    fail "eval of masked words: $(field loss), not $last"
encode 2 never bert words.txt --max-steps 2 --task causal_lm
encode 0 nli masked "$SOURCE/tests/golden/examples/pairs.tsv" --task sequence_classification \
    --max-steps 40 --per-device-train-batch-size 6 --eval-data "$SOURCE/tests/golden/examples/pairs.tsv"
says 'accuracy 1\.0000 '
grep -q '"BertForSequenceClassification"' nli/config.json || fail "architectures of nli"
encode 0 ner masked "$SOURCE/tests/golden/examples/tagged.jsonl" --task token_classification \
    --max-steps 40 --per-device-train-batch-size 3 --eval-data "$SOURCE/tests/golden/examples/tagged.jsonl"
says 'precision 1\.0000  recall 1\.0000  f1 1\.0000'
encode 2 never model words.txt --task masked_lm --max-steps 2

# --- DeBERTa: relative positions, and a convolution whose kernel has three dimensions in files ---
cat >deberta.json <<'J'
{"model_type": "deberta-v2", "architectures": ["DebertaV2ForMaskedLM"], "vocab_size": 120,
 "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
 "max_position_embeddings": 64, "relative_attention": true, "position_buckets": 8,
 "pos_att_type": "c2p|p2c", "share_att_key": true, "norm_rel_ebd": "layer_norm",
 "position_biased_input": false, "conv_kernel_size": 3, "conv_act": "gelu"}
J
sifr init --config deberta.json --tokenizer "$SOURCE/tests/golden/examples/wordpiece" --output deberta --seed 3 >/dev/null
encode 0 relative deberta "$SOURCE/tests/golden/examples/pairs.tsv" --task sequence_classification \
    --max-steps 60 --per-device-train-batch-size 6 --eval-data "$SOURCE/tests/golden/examples/pairs.tsv"
says 'accuracy 1\.0000 '
grep -q '"DebertaV2ForSequenceClassification"' relative/config.json || fail "architectures of relative"
expect 0 sifr eval --model relative --data "$SOURCE/tests/golden/examples/pairs.tsv" --seq-length 32 --json
[ "$(field accuracy)" = 1.0 ] || fail "eval of relative: $(cat out)"

# --- what is wrong with data is one line, with the file and the row ---
printf 'text,label\ngood,1\n,0\n' >empty.csv
run 1 never empty.csv --task sequence_classification --max-steps 2
complains "empty.csv: line 3: 'text' is empty; remove the row"
printf 'sentence,class\ngood,1\nbad,0\n' >columns.csv
run 2 never columns.csv --task sequence_classification --max-steps 2
complains "columns.csv: no column of labels has a usual name; it has 'sentence', 'class': name one with label_column"
run 0 named columns.csv --task sequence_classification --max-steps 2 --label-column class \
    --per-device-train-batch-size 2
run 2 never columns.csv --task sequence_classification --max-steps 2 --label-column klass
complains "no column is named 'klass' (label_column)"
printf 'text,label\ngood,1\nbad,0,1\n' >fields.csv
run 1 never fields.csv --task sequence_classification --max-steps 2
complains 'fields.csv: line 3 has more than 2 fields'
printf 'text,label\ngood,1\nbad,0\n\303\050,1\n' >utf.csv
run 1 never utf.csv --task sequence_classification --max-steps 2
complains 'utf.csv: line 4 is not valid UTF-8'
printf '{"text": "good", "label": 1}\n{"text": "bad", "label": 0.5}\n{"text": "x", "label": 0}\n' >type.jsonl
run 1 never type.jsonl --task sequence_classification --max-steps 2
complains "type.jsonl: line 2: 'label' is a number; it must be a label's name or number"
awk 'BEGIN { print "text,text_pair,label"; for (i = 0; i < 4; i++) { for (k = 0; k < 30; k++) printf "good food "; print ",bad day," i % 2 } }' >long.csv
run 0 long long.csv --task sequence_classification --max-steps 2
grep -q 'data: 4 of them are longer than seq_length 24 and were cut' err || fail "truncation: $(cat err)"
run 2 never text --task sequence_classification --max-steps 2
complains 'text: rows are read from files named .csv, .tsv, .json, .jsonl or .conll'
run 2 never pairs.tsv --task masked_lm --max-steps 2
complains 'model_type "llama" has no class for masked_lm'
[ ! -e never ] || fail "a refused run left its output"
