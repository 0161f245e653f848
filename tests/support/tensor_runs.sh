# Sourced, behind ranks.sh, by tests that compare tensor ranks with one rank.

adamw='{"type": "AdamW", "params": {"lr": 3e-3}}'
# settings SIZE STAGE [MORE [OPTIMIZER]]: ds.json; MORE: keys of "sifr"
settings() {
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": $2},
 "optimizer": ${4:-$adamw},
 "tensor_parallel": {"enabled": true, "size": $1},
 "sifr": {"seq_length": 32, "max_steps": 20, "save_steps": 10${3:-}}}
J
}
train() { # RUN RANKS [OPTION...]
    local run=$1 ranks=$2
    shift 2
    $launcher -np "$ranks" "$SIFR" train --config ds.json --data text --json --output "$run" "$@" \
        >out 2>err || fail "$run: exit code $?"
}
# near RUN ONE: the losses and norms of ONE within 1e-5 and 1e-4
near() {
    awk -F, 'FNR == 1 { next } NR == FNR { loss[$1] = $3; norm[$1] = $4; next }
        { n++; a = $3 / loss[$1] - 1; b = $4 / norm[$1] - 1
          if (a * a > 1e-10 || b * b > 1e-8) { print "step " $1 ": " $3 " and " $4; bad = 1 } }
        END { exit bad || n != 20 }' "$2/metrics.csv" "$1/metrics.csv" >difference ||
        fail "$1: $(cat difference)"
}
