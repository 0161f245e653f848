# State on disk where the kernel refuses io_uring, or the file system O_DIRECT, as a user meets it in
# a container and on other file systems: the run says so once, and has the same bits and checkpoints
# as with both. The refusals are a seccomp filter's (support/refuse_calls.h).
# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/disk_runs.sh"
refusing="$BUILD/tests/refusing"
code=0
"$refusing" rings-forbidden direct -- true || code=$?
[ $code != 77 ] || { echo "no seccomp filters here: nothing can be refused"; exit 77; }
[ $code = 0 ] || fail "the filter"
cat >ds.json <<'J'
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.01}},
 "zero_optimization": {"stage": 3, "sub_group_size": 5000,
     "offload_param": {"device": "nvme", "nvme_path": "nvme"},
     "offload_optimizer": {"device": "nvme", "nvme_path": "nvme"}},
 "aio": {"block_size": 16384, "queue_depth": 3, "intra_op_parallelism": 2},
 "sifr": {"seq_length": 32, "save_steps": 2, "eval_steps": 2,
     "offload_gradients": "nvme", "offload_activations": "nvme"}}
J
train() { # OUTPUT RANKS WHAT...
    local output=$1 n=$2
    "$refusing" "${@:3}" -- "$SIFR" train --config ds.json --model llama --data text \
        --eval-data text --max-eval-windows 3 --output "$output" --ranks $n --threads 1 \
        --max-steps 4 >log 2>err || fail "$output: exit code $?"
    [ -z "$(ls nvme)" ] || fail "$output: left behind: $(ls nvme)"
}
said() { # TEXT WHAT: once, over all ranks
    [ "$(cat log err | grep -c "in nvme, by $1")" = 1 ] && [ "$(cat log err | grep -c "in nvme, by ")" = 1 ] ||
        fail "$2: not said once: $1; but $(cat log err | grep "in nvme")"
}
not_pinned() { # REASON, which is not the limit of locked memory
    [ "$(cat log err | grep -c "could not be pinned for disk transfers: $1$")" = 1 ] || fail "not said once: $1"
    ! grep -q "ulimit" log err || fail "not the reason: $(cat log err | grep ulimit)"
}
states() { cat "$1"/checkpoint-*/state-*.safetensors | sha256sum; }
losses() { grep -o '"eval_loss": *[0-9.e-]*' "$1/metrics.jsonl"; }
same() { # DIRECTORY REFERENCE
    cmp "$1/model.safetensors" "$2/model.safetensors" || fail "$1: other weights"
    [ "$(states "$1")" = "$(states "$2")" ] || fail "$1: other checkpoints"
    [ "$(losses "$1")" = "$(losses "$2")" ] || fail "$1: other evaluations"
}
for n in $(ranks_of 1 2); do
    [ $n = 1 ] && each= || each=' a rank'
    train rings-$n $n
    grep -q "in nvme, by io_uring past the page cache" log err ||
        { echo "no io_uring, or no O_DIRECT, here: nothing to compare with"; exit 77; }
    for refusal in rings-unknown rings-forbidden; do
        train $refusal-$n $n $refusal
        said "plain reads and writes past the page cache$each$" "$refusal, $n ranks"
        not_pinned "that takes io_uring"
        same $refusal-$n rings-$n
    done
    train direct-$n $n direct
    said "io_uring$each\\(, with .* of memory pinned\\)\\?$" "no O_DIRECT, $n ranks"
    same direct-$n rings-$n
    train neither-$n $n rings-forbidden direct
    said "plain reads and writes$each$" "neither, $n ranks"
    not_pinned "that takes io_uring"
    same neither-$n rings-$n
done
