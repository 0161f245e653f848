# label: full
# Preferences on real ranks: the same weights and figures at 1, 2 and 4 ranks and at every ZeRO
# stage, with a reference that the ranks compute together, and through a checkpoint of other ranks.
# timeout: 300, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/ranks.sh"
tiny_model
awk 'BEGIN {
    split("the cat sat on a mat", w, " ")
    for (i = 0; i < 40; i++) {
        text = ""
        for (j = 0; j <= i * 7 % 9; j++) text = text w[(i + j) % 6 + 1] " "
        printf "{\"prompt\": \"%s\", \"chosen\": \"%s dog\", \"rejected\": \"%s%s\"}\n", text, w[i % 6 + 1], w[(i + 2) % 6 + 1], i % 3 ? " mat" : ""
    }
}' >pairs.jsonl
run() { # RANKS STAGE OUTPUT OPTION…
    local ranks=$1 stage=$2 output=$3
    shift 3
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "zero_optimization": {"stage": $stage},
 "sifr": {"preference": {"loss_type": "$loss"}, "seq_length": 64, "max_steps": 6, "eval_steps": 3,
          "save_steps": 3, "validation_split": 0.2, "threads": 1}}
J
    $launcher -n "$ranks" "$SIFR" train --config ds.json --model model --data pairs.jsonl \
        --output "$output" "$@" >out 2>err || fail "$ranks ranks at stage $stage"
}
for loss in sigmoid orpo; do
    run 1 0 $loss
    for ranks in 2 4; do
        for stage in 0 1 2 3; do
            run $ranks $stage "$loss-$ranks-$stage"
            same "$loss-$ranks-$stage" $loss
        done
    done
done
loss=sigmoid
cp -r sigmoid-4-3 cut
rm -rf cut/checkpoint-6 cut/model.safetensors
echo checkpoint-3 >cut/latest
run 2 1 cut --resume
same cut sigmoid
