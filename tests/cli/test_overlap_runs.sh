# label: full; timeout: 200, not under sanitizers (MPI keeps what it took)
# tp_overlap_comm as a user gives it, on 2 and 4 ranks: the weights, figures and bytes of a run without
# it, in fp32 and bf16, with ZeRO, LoRA and tp_exact; a run goes on with it; that the planner sees the
# time; that it has no effect on one rank, and what it does not go with.
. "$SOURCE/tests/support/ranks.sh"
tiny_model
# settings SIZE STAGE KEYS [SIFR [MORE]]: ds.json. A micro batch has 640 tokens, three tiles.
settings() {
    cat >ds.json <<J
{"train_batch_size": 20, "train_micro_batch_size_per_gpu": 10, "zero_optimization": {"stage": $2},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "tensor_parallel": {"enabled": true, "size": $1$3},
 "sifr": {"seq_length": 64, "max_steps": 4, "save_steps": 2${4:-}}${5:-}}
J
}
train() {
    run=$1 ranks=$2
    shift 2
    $launcher -np "$ranks" "$SIFR" train --config ds.json --model model --data text --json \
        --output "$run" "$@" >out 2>err || fail "$run: exit code $?"
}
overlap=', "tp_overlap_comm": true'
pair() { # NAME RANKS SIZE STAGE [SIFR [MORE]]
    settings "$3" "$4" "" "${5:-}" "${6:-}"
    train "$1-waits" "$2"
    groups >want
    settings "$3" "$4" "$overlap" "${5:-}" "${6:-}"
    train "$1" "$2"
    if [ "$1" = lora ]; then
        cmp lora/adapter_model.safetensors lora-waits/adapter_model.safetensors ||
            fail "lora: other weights"
    else
        same "$1" "$1-waits"
    fi
    groups | diff want - >difference || fail "$1: other bytes: $(cat difference)"
    groups | awk '$3 != $4 { exit 1 }' || fail "$1: other bytes than planned: $(groups)"
}
pair two 2 2 0
pair four 4 2 3 '' ', "bf16": {"enabled": true}'
pair lora 2 2 1 ', "lora": {"r": 8, "target_modules": ["q_proj", "o_proj", "down_proj"]}'
pair exact 2 2 2 ', "tp_exact": 2'
settings 2 0 "$overlap"
cp -r two-waits on
rm -r on/checkpoint-4
train on 2 --resume
same on two

# A link that moves as much in a second as is computed: half of the time of sums is gone at least.
cat >machine.json <<'J'
{"fp32_operations_per_s": 1e10, "memory_bytes_per_s": 1e11, "host_latency_s": 1e-6,
 "host_bytes_per_s": 1e8}
J
predicted() {
    "$SIFR" plan --config ds.json --model model --world-size 2 --machine machine.json --json >plan \
        2>err || fail "plan: exit code $?"
    sed -n 's/^ *"waiting_s": \([0-9.e+-]*\),*$/\1/p' plan | sed -n 1p
}
with=$(predicted)
settings 2 0 ""
awk -v with="$with" -v without="$(predicted)" 'BEGIN { exit !(with > 0 && with < 0.8 * without) }' ||
    fail "predicted: $with s of waiting instead of $(predicted)"

settings 1 0 "$overlap"
"$SIFR" train --config ds.json --model model --data text --dry-run >out 2>err || fail "exit code $?"
grep -q 'tp_overlap_comm = true (no effect, there is one tensor rank)' out ||
    fail "no effect is not said"
refused() { # MESSAGE
    $launcher -np 2 "$SIFR" train --config ds.json --model model --data text --output no >out 2>err &&
        fail "not refused: $1"
    grep -qF "$1" err || fail "$1: $(cat err)"
}
settings 2 0 "$overlap" ', "tile_tokens": 1024'
refused 'tensor_parallel.tp_overlap_comm: sifr.tile_tokens is not supported with it yet'
settings 2 0 "$overlap" ', "sequence_parallel": true'
sed -i 's/"train_batch_size": 20, "train_micro_batch_size_per_gpu": 10/"train_batch_size": 8, "train_micro_batch_size_per_gpu": 8/' ds.json
refused 'tensor_parallel.tp_overlap_comm: sifr.sequence_parallel is not supported with it yet'
