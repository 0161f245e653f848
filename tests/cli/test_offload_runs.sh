# Optimizer state on disk, as a user has it: the same bits and checkpoints as in memory, at every
# stage, on one and two ranks, across a resume and a kill; what is left of a killed run goes with the
# next one; a disk that is too small, and a file that is cut off, end with a clear word.
# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
run=
trap 'kill -9 $run 2>/dev/null || :; wait || :' EXIT
. "$SOURCE/tests/support/disk_runs.sh"
ranks=$(ranks_of 1 2)
config() { # STAGE OFFLOAD [AIO]
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.01}},
 "zero_optimization": {"stage": $1, "offload_optimizer": {$2}, "sub_group_size": 5000},
 "aio": {${3:-}}, "sifr": {"seq_length": 32, "save_steps": 2}}
J
}
disk='"device": "nvme", "nvme_path": "nvme"'
train() { # OUTPUT RANKS OPTION...
    "$SIFR" train --config ds.json --model llama --data text --output "$1" --ranks $2 --threads 1 \
        "${@:3}" >log 2>err
}
empty() { [ -z "$(ls nvme)" ] || fail "$1: left behind: $(ls nvme)"; }
states() { cat "$1"/checkpoint-*/state-*.safetensors | sha256sum; }
same() { # DIRECTORY REFERENCE WHAT
    cmp "$1/model.safetensors" "$2/model.safetensors" || fail "$3: other weights"
    [ "$(states "$1")" = "$(states "$2")" ] || fail "$3: other checkpoints"
}

# --- the same bits, and the plan ---
for n in $ranks; do
    for stage in 0 3; do
        config $stage '"device": "none"'
        train memory-$n-$stage $n --max-steps 4 || fail "in memory"
        config $stage "$disk" '"block_size": 16384, "queue_depth": 3'
        train disk-$n-$stage $n --max-steps 4 || fail "$n ranks, stage $stage"
        grep -q "optimizer state: .* in nvme, by " log err || fail "where it is, is not said"
        same disk-$n-$stage memory-$n-$stage "$n ranks, stage $stage"
        empty "$n ranks, stage $stage"
    done
done

# --- one kind of it alone, and the other one after a resume ---
for n in $ranks; do
    config 3 "$disk"
    for kind in master_weights moments; do
        train kind-$n-$kind $n --max-steps 2 --offload-state $kind || fail "$n ranks, $kind"
        grep -q "^${kind/_/ }: .* in nvme, by " log err || fail "$kind: where they are, is not said"
    done
    train kind-$n-moments $n --max-steps 4 --offload-state master_weights --resume ||
        fail "$n ranks, resumed"
    same kind-$n-moments memory-$n-3 "$n ranks, moments, then master weights"
    train kind-$n-master_weights $n --max-steps 4 --resume || fail "$n ranks, all resumed"
    same kind-$n-master_weights memory-$n-3 "$n ranks, master weights, then all"
    empty "$n ranks, one kind"
done
config 3 "$disk" '"block_size": 16384, "queue_depth": 3'
if setpriv --bounding-set -ipc_lock true 2>/dev/null; then
    (ulimit -l 64 && exec setpriv --bounding-set -ipc_lock "$SIFR" train --config ds.json \
        --model llama --data text --output unpinned --threads 1 --max-steps 4) >log 2>err ||
        fail "with little locked memory"
    [ "$(cat log err | grep -c "could not be pinned for disk transfers: ulimit -l is 64.0 KiB")" = 1 ] ||
        fail "why nothing is pinned is not said once"
    same unpinned memory-1-3 "with little locked memory"
fi
"$SIFR" plan --config ds.json --model llama >plan
grep -q "^on nvme  .* read and .* written a step" plan || fail "no line in the plan: $(cat plan)"
grep -q "^swap buffers" plan || "$SIFR" plan --config ds.json --model llama --dump | grep -q " disk " ||
    fail "nothing of the disk in the plan"
"$SIFR" plan --config ds.json --model llama --world-size 4 --rank 1 >plan4
[ "$(grep -c "^on nvme " plan4)" = 2 ] || fail "no line for the stages: $(cat plan4)"
grep -q "^master weights\|^moments" plan && fail "state is still in memory"

# --- the examples, with a directory that is there ---
cp "$SOURCE/examples/ds_config_offload_host.json" ds.json
train host 1 --seq-length 32 --per-device-train-batch-size 1 --max-steps 2 || fail "the host example"
sed 's|/local_nvme|nvme|' "$SOURCE/examples/ds_config_nvme.json" >ds.json
train example 1 --seq-length 32 --per-device-train-batch-size 1 --max-steps 2 || fail "the example"
empty "the example"

# --- killed, resumed, and cleaned up after ---
. "$SOURCE/tests/support/until_it.sh"
newest() { # of those that are complete
    ls "$1" | sed -n 's/^checkpoint-\([0-9]*\)$/\1/p' | sort -n | tail -n 1
}
config 3 "$disk"
"$SIFR" train --config ds.json --model llama --data text --output killed --threads 1 \
    --save-total-limit 2 --max-steps 100000 >log 2>err &
run=$!
until_it test -e killed/latest
kill -9 $run
wait $run 2>/dev/null || :
[ "$(ls nvme | wc -l)" = 1 ] || fail "a killed run leaves its directory: $(ls nvme)"
mkdir nvme/sifr-swap-mine && touch nvme/sifr-swap-mine/precious
steps=$(newest killed)
train killed 1 --max-steps $((steps + 2)) --resume || fail "resumed"
grep -q "resumed from checkpoint-$steps" log err || fail "not from step $steps"
grep -q "removed 1 swap directory left by killed runs" log err || fail "the cleaning is not said"
[ "$(find nvme -mindepth 1)" = "nvme/sifr-swap-mine
nvme/sifr-swap-mine/precious" ] || fail "cleaned: $(find nvme)"
rm -r nvme/sifr-swap-mine
config 3 '"device": "cpu"'
train whole 1 --max-steps $((steps + 2)) || fail "the whole run"
cmp killed/model.safetensors whole/model.safetensors || fail "other weights after the kill"

# --- a file that is cut off under the run ---
config 3 "$disk"
for n in $ranks; do
    "$SIFR" train --config ds.json --model llama --data text --output cut-$n --threads 1 \
        --ranks $n --save-total-limit 2 --max-steps 100000 >log 2>err &
    run=$!
    until_it test -e cut-$n/latest
    cut_off nvme/sifr-swap-rank$((n - 1))-*/state
    code=0
    wait $run || code=$?
    [ $code = 1 ] || fail "$n ranks: a file cut off: exit code $code"
    grep -q "/state: the file ends before byte" err || fail "$n ranks: the reason is not said"
    empty "a failed run"
    steps=$(newest cut-$n)
    train cut-$n 1 --max-steps $((steps + 1)) --resume || fail "the checkpoint does not load"
done

# --- refused ---
config 1 '"device": "nvme", "nvme_path": "nowhere"'
code=0
train none 1 --max-steps 2 || code=$?
[ $code = 2 ] || fail "no directory: exit code $code"
grep -q "nowhere: there is no such directory" err || fail "no directory is not said"
if unshare -rm mount -t tmpfs none /mnt 2>/dev/null; then
    mkdir small
    config 1 '"device": "nvme", "nvme_path": "small"'
    code=0
    unshare -rm sh -c 'mount -t tmpfs -o size=300k none small && exec "$0" train --config ds.json \
        --model llama --data text --output none --max-steps 2' "$SIFR" >log 2>err || code=$?
    [ $code = 3 ] || fail "a small disk: exit code $code"
    grep -q "disk: the run puts .* in small, and .* are free there; .*; it fits with " err ||
        fail "the room is not said"
fi
