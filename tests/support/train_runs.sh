# Sourced by tests that train as a user does: small models of both kinds in llama/ and gpt2/, their
# tokenizer in tok/, text in books/ and held, a config for 30 steps in ds.json.
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/two_models.sh"
trap 'kill -9 $(jobs -p) 2>/dev/null || :; wait || :' EXIT
bits() { sha256sum <"$1/model.safetensors"; }

# Text with something to learn: words that tend to follow each other.
awk 'BEGIN {
    n = split("the cat sat on a mat and saw that dog run over my big red house while we ate", w, " ")
    s = 7
    for (line = 0; line < 6000; line++) {
        text = ""
        for (i = 0; i < 8; i++) {
            s = (s * 1103515245 + 12345) % 2147483648
            k = (s / 65536) % 4 == 0 ? int(s / 65536) % n : (k * 3 + 1) % n
            text = text (i ? " " : "") w[k + 1]
        }
        print text "."
    }
}' >text
head -c 20000 text >held
mkdir books
split -n l/5 text books/part-
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >/dev/null
two_models 128
cat >ds.json <<'J'
{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.01}},
 "scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 4, "total_num_steps": 30}},
 "sifr": {"seq_length": 64, "max_steps": 30}}
J
train() { "$SIFR" train --config ds.json --data books --threads 1 "$@"; }
steady="$SIFR train --config ds.json --data books --threads 1 --model gpt2 --save-steps 4
    --save-total-limit 2 --eval-data held --eval-steps 10 --max-eval-windows 30 --logging-steps 3"
