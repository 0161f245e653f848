# label: full
# What fine-tuning learns on tensor ranks: preferences with a reference that the ranks make, and
# another model's distribution, with one rank's losses, rewards and evaluations within 1e-4, with
# ZeRO over data ranks beside them their bits; and LAMB.
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
awk 'BEGIN {
    split("the cat sat on a mat", w, " ")
    for (i = 0; i < 16; i++)
        printf "{\"prompt\": \"%s %s\", \"completion\": \"%s %s dog\"}\n", w[i % 6 + 1], w[(i + 2) % 6 + 1], w[i * 5 % 6 + 1], w[i * 7 % 6 + 1]
}' >rows.jsonl
# run RANKS SIZE STAGE OUTPUT OBJECTIVE OPTION…
run() {
    local ranks=$1 size=$2 stage=$3 output=$4 objective=$5
    shift 5
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,
 "optimizer": {"type": "$optimizer", "params": {"lr": 1e-3}}, "zero_optimization": {"stage": $stage},
 "tensor_parallel": {"enabled": true, "size": $size},
 "sifr": {$objective "seq_length": 64, "max_steps": 6, "eval_steps": 3, "save_steps": 3,
          "validation_split": 0.2, "threads": 1}}
J
    $launcher -n "$ranks" "$SIFR" train --config ds.json --model model --output "$output" "$@" \
        >out 2>err || fail "$output: exit code $?"
}
# What was learned and measured: no times, speeds or memory.
figures_of() {
    tr -d '{}' <"$1/metrics.jsonl" | tr ',' '\n' |
        grep -E '"(loss|grad_norm|eval_loss|rewards/[a-z]*|eval_rewards/[a-z]*|logps/[a-z]*)":' |
        tr -d '"' | tr ':' ' '
}
# near RUN ONE: the same figures, within 1e-4, or 1e-5 where they are near 0
near() {
    figures_of "$2" >want
    figures_of "$1" >have
    [ -s want ] || fail "$2: no figures"
    paste want have | awk 'NF != 4 || $1 != $3 { print; bad = 1; next }
        { d = $4 - $2; if (d < 0) d = -d; s = $2 < 0 ? -$2 : $2
          if (d > 1e-4 * s + 1e-5) { print; bad = 1 } } END { exit bad }' >difference ||
        fail "$1: $(cat difference)"
}
optimizer=AdamW
for loss in sigmoid orpo; do
    pairs="\"preference\": {\"loss_type\": \"$loss\"},"
    run 1 1 0 $loss-one "$pairs" --data pairs.jsonl
    run 2 2 0 $loss-two "$pairs" --data pairs.jsonl
    near $loss-two $loss-one
    run 4 2 3 $loss-four "$pairs" --data pairs.jsonl
    same $loss-four $loss-two
    figures_of $loss-two >want
    figures_of $loss-four | diff want - >&2 || fail "$loss: other rewards on 4 ranks"
done
exact="$pairs \"tp_exact\": 2,"
run 1 1 0 exact-one "$exact" --data pairs.jsonl
run 2 2 0 exact-two "$exact" --data pairs.jsonl
same exact-two exact-one
cmp sigmoid-two/data/reference.safetensors sigmoid-four/data/reference.safetensors ||
    fail "the reference is another on 4 ranks"

"$SIFR" score --model model --data rows.jsonl --seq-length 64 --output scores.safetensors \
    --top-k 8 --temperature 2 --threads 1 >out 2>err || fail score
set -- --data rows.jsonl --distill scores.safetensors --distill-weight 0.5
"$SIFR" init --config tiny.json --tokenizer tok --output student --seed 5 >/dev/null
mv model teacher && mv student model
run 1 1 0 distilled-one '' "$@"
run 2 2 0 distilled-two '' "$@"
near distilled-two distilled-one
run 4 2 2 distilled-four '' "$@"
same distilled-four distilled-two

optimizer=Lamb
run 1 1 0 lamb-one '' --data rows.jsonl
run 2 2 0 lamb-two '' --data rows.jsonl
near lamb-two lamb-one
run 4 2 3 lamb-four '' --data rows.jsonl
same lamb-four lamb-two
