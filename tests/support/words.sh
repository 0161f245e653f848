# Sourced by tests that train encoders: words in labels.tsv and text.txt, and a tokenizer for them.
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
