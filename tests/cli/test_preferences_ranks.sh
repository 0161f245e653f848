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
# Stages of a pipeline: the last one has the log-probabilities.
for loss in sigmoid orpo; do
    run 2 0 "$loss-stages" --pipeline-stages 2
    same "$loss-stages" $loss
done
run 4 3 orpo-stages-4 --pipeline-stages 2
same orpo-stages-4 orpo
loss=sigmoid
cp -r sigmoid-4-3 cut
rm -rf cut/checkpoint-6 cut/model.safetensors
echo checkpoint-3 >cut/latest
run 2 1 cut --resume
same cut sigmoid

# Another model's distribution, in stages: the bits of one rank.
"$SIFR" score --model model --data text --seq-length 64 --top-k 8 --temperature 2 \
    --output scores.safetensors >out 2>err || fail "score: exit code $?"
distil() { # RANKS OUTPUT PIPELINE
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "zero_optimization": {"stage": 1}, $3
 "sifr": {"distill": {"scores": "scores.safetensors"}, "seq_length": 64, "max_steps": 4}}
J
    "$SIFR" train --config ds.json --model model --data text --output "$2" --ranks "$1" \
        --threads 1 >out 2>err || fail "$2: exit code $?"
}
distil 1 distil ''
distil 4 distil-stages '"pipeline": {"stages": 2, "schedule": "zb-h1"},'
same distil-stages distil
