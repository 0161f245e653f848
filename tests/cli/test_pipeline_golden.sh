# label: full; timeout: 120, not under sanitizers (MPI keeps what it took)
# Two stages beside torch.distributed.pipelining (golden/make_pipeline.py): the losses and norms of
# five steps by the program, on two ranks of one stage each, and on four with their state cut.
. "$SOURCE/tests/support/ranks.sh"
golden=$SOURCE/tests/golden/pipeline

# like_torch MODEL RANKS SCHEDULE ZERO: within 1e-5 (losses) and 1e-4 (norms), the bounds of one rank.
like_torch() {
    local case="$1, $2 ranks, $3, ZeRO $4"
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 5e-3, "weight_decay": 0.1}},
 "zero_optimization": {"stage": $4}, "pipeline": {"stages": 2, "schedule": "$3"},
 "sifr": {"seq_length": 48, "max_steps": 5, "logging_steps": 1}}
J
    rm -rf run
    "$SIFR" train --config ds.json --model "$SOURCE/tests/golden/models/$1" --data "$golden/store" \
        --threads 1 --output run --ranks $2 >out 2>err || fail "$case: exit code $?"
    grep -q '^mesh: 2 stages' out || fail "$case: no stages"
    awk -v model="$1" '
        NR == FNR {
            if ($1 == "\"model\":") inside = $2 == "\"" model "\","
            if ($1 ~ /^"step_/) list = $1
            if (inside && $1 ~ /^[0-9]/) want[list, ++count[list]] = $1 + 0
            next
        }
        function far(list, key, bound,    at, got, truth) {
            at = index($0, "\"" key "\":")
            if (!at) return 1
            got = substr($0, at + length(key) + 3) + 0
            truth = want[list, step]
            return truth <= 0 || got / truth - 1 > bound || 1 - got / truth > bound
        }
        /"loss":/ {
            step++
            if (!far("\"step_loss\":", "loss", 1e-5) &&
                !far("\"step_gradient_norm\":", "grad_norm", 1e-4)) next
            print "step " step ": " $0
            bad = 1
        }
        END { exit bad || step != 5 }' "$golden/steps.json" run/metrics.jsonl >>err ||
        fail "$case: not what PyTorch has"
}

like_torch llama2 2 1f1b 0
like_torch gpt2 2 1f1b 0
like_torch gpt2 4 zb-h1 2
