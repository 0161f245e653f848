# Parameters and gradients on disk, as a user has them: the same bits, checkpoints and evaluations as in memory, on
# one and two ranks, with the optimizer's state there or not, across a resume from one to the other;
# what the plan says of it; buffers that are too few.
# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/disk_runs.sh"
ranks=$(ranks_of 1 2)
nvme='"device": "nvme", "nvme_path": "nvme"'
none='"device": "none"'
config() { # PARAM OPTIMIZER [AIO]
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.01}},
 "zero_optimization": {"stage": 3, "sub_group_size": 5000,
     "offload_param": {$1}, "offload_optimizer": {$2}},
 "aio": {${3:-}}, "sifr": {"seq_length": 32, "save_steps": 2, "eval_steps": 2}}
J
}
train() { # OUTPUT RANKS OPTION...
    "$SIFR" train --config ds.json --model llama --data text --eval-data text \
        --max-eval-windows 3 --output "$1" --ranks $2 --threads 1 "${@:3}" >log 2>err
}
empty() { [ -z "$(ls nvme)" ] || fail "$1: left behind: $(ls nvme)"; }
states() { cat "$1"/checkpoint-*/state-*.safetensors | sha256sum; }
losses() { grep -o '"eval_loss": *[0-9.e-]*' "$1/metrics.jsonl"; }
same() { # DIRECTORY REFERENCE WHAT
    cmp "$1/model.safetensors" "$2/model.safetensors" || fail "$3: other weights"
    [ "$(states "$1")" = "$(states "$2")" ] || fail "$3: other checkpoints"
    [ "$(losses "$1")" = "$(losses "$2")" ] || fail "$3: other evaluations"
}

# --- the same bits ---
for n in $ranks; do
    config "$none" "$none"
    train memory-$n $n --max-steps 4 || fail "in memory"
    [ "$(losses memory-$n | wc -l)" -ge 2 ] || fail "no evaluation to compare"
    config "$nvme" "$none" '"block_size": 16384, "queue_depth": 3'
    train param-$n $n --max-steps 4 || fail "$n ranks, parameters"
    cat log err | grep -q "parameters: .* in nvme, by " || fail "where they are, is not said"
    same param-$n memory-$n "$n ranks, parameters"
    config "$nvme, \"buffer_count\": 4, \"buffer_size\": 100000" "$nvme"
    train both-$n $n --max-steps 4 || fail "$n ranks, all"
    cat log err | grep -q "optimizer state and parameters: .* in nvme" || fail "both are not said"
    same both-$n memory-$n "$n ranks, all"
    train gradients-$n $n --max-steps 4 --offload-gradients nvme --step-order unit ||
        fail "$n ranks, gradients"
    cmp gradients-$n/model.safetensors memory-$n/model.safetensors || fail "gradients: other weights"
    empty "$n ranks"
done

# --- saved in memory, gone on with on disk, and back ---
config "$none" "$none"
train turns 1 --max-steps 2 || fail "in memory"
config "$nvme" "$nvme"
train turns ${ranks##* } --max-steps 3 --resume --offload-gradients nvme --step-order unit ||
    fail "resumed on disk"
config '"device": "cpu"' "$none"
train turns 1 --max-steps 4 --resume || fail "resumed in memory"
cmp turns/model.safetensors memory-1/model.safetensors || fail "other weights after the turns"
empty "turns"

# --- the example, with a directory that is there ---
sed 's|/local_nvme|nvme|' "$SOURCE/examples/ds_config_infinity.json" >ds.json
train example 1 --seq-length 32 --per-device-train-batch-size 1 --max-steps 2 || fail "the example"
empty "the example"

# --- the plan ---
config "$none" "$none"
"$SIFR" plan --config ds.json --model llama --json >memory.json
config "$nvme" "$none"
"$SIFR" plan --config ds.json --model llama --json >disk.json
"$SIFR" plan --config ds.json --model llama >plan
grep -q "^on nvme  .* read and .* written a step" plan || fail "no line in the plan: $(cat plan)"
grep -q "^  parameters  " plan || fail "not which class: $(cat plan)"
grep -q "^parameters" plan && fail "parameters are still in memory: $(cat plan)"
python3 - <<'P' || fail "the plans: $(cat plan)"
import json
memory, disk = json.load(open("memory.json")), json.load(open("disk.json"))
slices = memory["classes"]["parameters"]
assert slices > 0 and disk["classes"]["parameters"] == 0
on = disk["nvme"]
assert on["classes"]["parameters"] == on["bytes"] and slices <= on["bytes"] < slices + 16 * 4096
assert slices <= on["written_bytes"] < slices + 16 * 4096 < on["read_bytes"]
assert disk["peak_bytes"] < memory["peak_bytes"]
P

config "$nvme" "$nvme"
"$SIFR" plan --config ds.json --model llama --offload-gradients nvme --step-order unit >plan
grep -q "^  gradients  " plan || fail "no gradients on disk: $(cat plan)"

# --- refused, with the numbers that work ---
config "$nvme, \"buffer_size\": 1000" "$none"
code=0
train none 1 --max-steps 2 || code=$?
[ $code = 2 ] || fail "small buffers: exit code $code"
grep -q "offload_param: buffer_size 1000: a rank's slice of .* elements; give at least" err ||
    fail "the size is not said"
config "$nvme, \"buffer_count\": 1" "$none"
code=0
train none 1 --max-steps 2 || code=$?
[ $code = 2 ] || fail "one buffer: exit code $code"
grep -q "offload_param: buffer_count 1: 2 slices are in use at a time; .*or 3 to read one" err ||
    fail "the count is not said"
empty "what was refused"
