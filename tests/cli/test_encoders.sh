# Every family of encoders through the program: its tiny folder learns masked words to the same bits
# at 1, 2 and 4 ranks, ZeRO 0 and 3, and with recomputation; an export is what the run wrote;
# config.json comes out byte for byte. It learns labels of sequences under a head that is made. It
# does not generate, and is no GGUF file.
# label: full; timeout: 600, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/ranks.sh"
trap 'kill $(jobs -p) 2>/dev/null || :; wait || :' EXIT

. "$SOURCE/tests/support/words.sh"
for stage in 0 3; do
    cat >ds$stage.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.1}},
 "zero_optimization": {"stage": $stage},
 "sifr": {"seq_length": 24, "max_steps": 2, "logging_steps": 1}}
J
done
sed 's/"zero_opt/"pipeline": {"stages": 2, "schedule": "interleaved"}, &/' ds0.json >dsparts.json
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
    if [ $name = deberta ]; then # relative positions cross each border beside the hidden states
        train parts text.txt 2:parts --ranks 2
        same one 2:parts
    fi
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
    rm -rf one ?:* kept exported labels-?:?
done
