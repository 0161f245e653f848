# Activations on disk, as a user has them: the same bits, checkpoints and evaluations as in memory, on
# one, two and four ranks, alone and with all other state there, across a resume; what the plan says
# and what a run takes; what is killed, too small or broken. And gradients there by themselves.
# label: full; timeout: 300
# not under sanitizers (MPI keeps what it took)
run=
trap 'kill -9 $run 2>/dev/null || :; wait || :' EXIT
. "$SOURCE/tests/support/disk_runs.sh"
ranks=$(ranks_of 1 2 4)
config() { # STAGE ZERO SIFR
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.01}},
 "zero_optimization": {"stage": $1, "sub_group_size": 5000 $2}, "aio": {"block_size": 16384},
 "sifr": {"seq_length": 64, "save_steps": 2, "eval_steps": 2 $3}}
J
}
own=', "offload_activations": "nvme", "nvme_path": "nvme"'
nvme='{"device": "nvme", "nvme_path": "nvme"}'
train() { # OUTPUT RANKS OPTION...
    "$SIFR" train --config ds.json --model llama --data text --eval-data text \
        --max-eval-windows 3 --output "$1" --ranks $2 --threads 1 "${@:3}" >log 2>err
}
empty() { [ -z "$(ls nvme)" ] || fail "$1: left behind: $(ls nvme)"; }
losses() { grep -o '"eval_loss": *[0-9.e-]*' "$1/metrics.jsonl"; }
same() { # DIRECTORY REFERENCE WHAT
    cmp "$1/model.safetensors" "$2/model.safetensors" || fail "$3: other weights"
    [ "$(losses "$1")" = "$(losses "$2")" ] || fail "$3: other evaluations"
}
states() { cat "$1"/checkpoint-*/state-*.safetensors | sha256sum; }

# --- the same bits ---
config 0 "" ""
train memory 1 --max-steps 4 || fail "in memory"
[ "$(losses memory | wc -l)" -ge 2 ] || fail "no evaluation to compare"
config 0 "" "$own"
train disk 1 --max-steps 4 || fail "one rank"
grep -q "^activations: .* in nvme, by " log || fail "where they are, is not said"
same disk memory "one rank"
[ "$(states disk)" = "$(states memory)" ] || fail "other checkpoints"
for n in $ranks; do
    config 3 ", \"offload_optimizer\": $nvme, \"offload_param\": $nvme" \
        ', "offload_activations": "nvme", "offload_gradients": "nvme", "step_order": "unit"'
    train all-$n $n --max-steps 4 --recompute unit || fail "$n ranks, all"
    grep -q "^optimizer state, parameters, gradients and activations: .* in nvme" log || fail "not said: $(cat log)"
    same all-$n memory "$n ranks, all"
    empty "$n ranks"
done

for n in $ranks; do
    config 2 "" ', "offload_gradients": "nvme", "nvme_path": "nvme"'
    train sums-$n $n --max-steps 4 || fail "$n ranks, gradients"
    grep -q "^gradients: .* in nvme, by " log || fail "gradients: where they are, is not said"
    same sums-$n memory "$n ranks, gradients"
    empty "$n ranks, gradients"
done

# --- saved in memory, gone on with on disk, and back ---
config 0 "" ""
train turns 1 --max-steps 2 || fail "in memory"
config 1 "" "$own"
train turns ${ranks##* } --max-steps 3 --resume || fail "resumed on disk"
config 0 "" ', "offload_activations": "cpu"'
train turns 1 --max-steps 4 --resume || fail "resumed in memory"
cmp turns/model.safetensors memory/model.safetensors || fail "other weights after the turns"
empty "turns"

# --- the plan, and what a run takes beside it ---
config 0 "" ""
plan() { "$SIFR" plan --config ds.json --model llama "$@"; }
plan --json >memory.json
plan | grep -q "^sifr.offload_activations" && fail "a disk is offered where none is named"
plan --nvme nvme | grep -q "^sifr.offload_activations nvme .* on disk)" || fail "no row: $(plan --nvme nvme)"
config 0 "" "$own"
plan --json >disk.json
plan >plan
grep -q "^on nvme  .* read and .* written a step" plan && grep -q "^  activations  " plan ||
    fail "no line in the plan: $(cat plan)"
python3 - <<'P' || fail "the plans: $(cat plan)"
import json
memory, disk = json.load(open("memory.json")), json.load(open("disk.json"))
on, batches = disk["nvme"], 4
assert on["classes"]["activations"] == on["bytes"] > 0
assert on["read_bytes"] == on["written_bytes"] == batches * on["bytes"]
assert disk["at_most"]["activations"]["bytes"] < memory["at_most"]["activations"]["bytes"]
assert disk["peak_bytes"] < memory["peak_bytes"]
P
plan --nvme nvme --fit --output fit.json >fit || fail "--fit"
grep -q "^chosen" fit || fail "nothing is chosen: $(cat fit)"

# --- killed: what it leaves goes with the next run ---
. "$SOURCE/tests/support/until_it.sh"
start() { # OUTPUT
    "$SIFR" train --config ds.json --model llama --data text --output $1 --threads 1 \
        --save-total-limit 2 --max-steps 100000 >log 2>err &
    run=$!
    until_it test -e $1/latest
}
start killed
kill -9 $run
wait $run 2>/dev/null || :
[ "$(ls nvme | wc -l)" = 1 ] || fail "a killed run leaves its directory: $(ls nvme)"
train again 1 --max-steps 1 || fail "after the kill"
grep -q "removed 1 swap directory left by killed runs" log err || fail "the cleaning is not said"
empty "after the kill"

# --- a file that is cut off in the middle of a step ---
start cut
cut_off nvme/sifr-swap-rank0-*/state
code=0
wait $run || code=$?
[ $code = 1 ] || fail "a file cut off: exit code $code"
grep -q "/state: the file ends before byte" err || fail "the reason is not said"
empty "a failed run"
steps=$(ls cut | sed -n 's/^checkpoint-\([0-9]*\)$/\1/p' | sort -n | tail -n 1)
train cut 1 --max-steps $((steps + 1)) --resume || fail "the checkpoint does not load"

# --- refused ---
if unshare -rm mount -t tmpfs none /mnt 2>/dev/null; then
    mkdir small
    config 0 "" ', "offload_activations": "nvme", "nvme_path": "small"'
    code=0
    unshare -rm sh -c 'mount -t tmpfs -o size=48k none small && exec "$0" train --config ds.json \
        --model llama --data text --output none --max-steps 2' "$SIFR" >log 2>err || code=$?
    [ $code = 3 ] || fail "a small disk: exit code $code"
    grep -q "disk: the run puts .* in small, and .* are free there; .* it fits with " err || fail "the room is not said"
fi
