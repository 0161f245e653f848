# Every family of encoders through the program: its tiny folder learns masked words to the same bits
# at 1, 2 and 4 ranks, ZeRO 0 and 3, and with recomputation; an export is what the run wrote;
# config.json comes out byte for byte. It learns labels of sequences under a head that is made. It
# does not generate, and is no GGUF file.
# label: full; timeout: 600, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/ranks.sh"
trap 'kill $(jobs -p) 2>/dev/null || :; wait || :' EXIT

# Words of letters, and a label that the first of them decides.
awk 'BEGIN {
    s = 7
    print "text\tlabel"
    for (i = 0; i < 40; i++) {
        line = ""
        for (k = 0; k < 3 + i % 20; k++) {
            s = (s * 1103515245 + 12345) % 2147483648
            c = int(s / 65536) % 26
            if (k == 0) label = c < 13 ? "early" : "late"
            line = line (k ? " " : "") sprintf("%c", 97 + c)
        }
        print line "\t" label
    }
}' >labels.tsv
sed 1d labels.tsv | cut -f 1 >text.txt

# WordPiece with the padding at the id that the config names.
tokenizer() { # FOLDER
    awk -v pad="$(sed -n 's/^ *"pad_token_id": \([0-9]*\),*$/\1/p' "$1/config.json")" 'BEGIN {
        n = split("[UNK] [CLS] [SEP] [MASK] a b c d e f g h i j k l m n o p q r s t u v w x y z", w)
        printf "{\"version\": \"1.0\", \"added_tokens\": ["
        for (i = 0; i <= 4; i++) {
            id = i == 0 ? pad : i - 1 + (i - 1 >= pad)
            name = i == 0 ? "[PAD]" : w[i]
            printf "%s{\"id\": %d, \"content\": \"%s\", \"single_word\": false, \"lstrip\": false, ",
                i ? ", " : "", id, name
            printf "\"rstrip\": false, \"normalized\": false, \"special\": true}"
        }
        printf "], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, "
        printf "\"post_processor\": null, \"decoder\": null, \"model\": {\"type\": \"WordPiece\", "
        printf "\"unk_token\": \"[UNK]\", \"continuing_subword_prefix\": \"##\", "
        printf "\"max_input_chars_per_word\": 100, \"vocab\": {\"[PAD]\": %d", pad
        for (i = 1; i <= n; i++) printf ", \"%s\": %d", w[i], i - 1 + (i - 1 >= pad)
        print "}}}"
    }' >"$1/tokenizer.json"
    printf '{"tokenizer_class": "PreTrainedTokenizerFast", "mask_token": "[MASK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}\n' \
        >"$1/tokenizer_config.json"
}

for stage in 0 3; do
    cat >ds$stage.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.1}},
 "zero_optimization": {"stage": $stage},
 "sifr": {"seq_length": 24, "max_steps": 2, "logging_steps": 1}}
J
done
train() { # STAGE DATA OUTPUT OPTION...
    "$SIFR" train --config ds$1.json --data $2 --model model --threads 1 --output "${@:3}" \
        >out 2>err || fail "$name: $*: $(tail -n 3 err)"
}
same() { cmp "$1/model.safetensors" "$2/model.safetensors" || fail "$name: $2: other weights"; }

for name in bert distilbert roberta xlm-roberta modernbert deberta; do
    rm -rf model && cp -r "$SOURCE/tests/golden/encoders/models/$name" model
    tokenizer model
    train 0 text.txt one --save-steps 2
    for run in 2:0 4:3; do
        train ${run#*:} text.txt $run --ranks ${run%:*}
        same one $run
    done
    train 0 text.txt kept --recompute unit
    same one kept
    cmp model/config.json one/config.json || fail "$name: another config.json"
    expect 0 "$SIFR" export one/checkpoint-2 exported
    cmp one/model.safetensors exported/model.safetensors || fail "$name: another export"

    for run in 1:0 2:3; do
        train ${run#*:} labels.tsv labels-$run --ranks ${run%:*} --task sequence_classification
    done
    same labels-1:0 labels-2:3
    for text in '"early": 0' '"late": 1' 'ForSequenceClassification'; do
        grep -q "$text" labels-1:0/config.json || fail "$name: config.json lacks $text"
    done

    expect 2 "$SIFR" generate --model model --prompt a
    expect 2 "$SIFR" export model model.gguf --format gguf
    rm -rf one ?:? kept exported labels-?:?
done
