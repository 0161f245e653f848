# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
# sifr.sequence_parallel as a user has it: on 2 and 4 tensor ranks, over ZeRO 3, with stages and with
# adapters the weights and figures of the run without it; fewer bytes of activations; each axis
# moves what was planned; partition_activations likewise; a run goes on without it, and with it;
# what does not go with it is refused by name.
. "$SOURCE/tests/support/ranks.sh"
tiny_model
# settings SIZE STAGE ROWS [MORE [SIFR]]: ds.json
settings() {
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": $2},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "tensor_parallel": {"enabled": true, "size": $1},
 "sifr": {"seq_length": 128, "max_steps": 6, "save_steps": 3, "sequence_parallel": $3${5:-}}${4:-}}
J
}
train() {
    run=$1 ranks=$2
    shift 2
    $launcher -np "$ranks" "$SIFR" train --config ds.json --model model --data text --json \
        --output "$run" "$@" >out 2>err || fail "$run: exit code $?"
}
counted() { groups | awk '$3 != $4 { exit 1 }' || fail "other bytes than planned: $(groups)"; }
# activations: bytes of the plan's peak
activations() {
    "$SIFR" plan --config ds.json --model model --world-size "$1" --json |
        awk '/"activations":/ { gsub(/[^0-9]/, "", $2); print $2; exit }'
}
settings 2 0 false
train two 2
whole=$(activations 2)
groups | grep '^tensors reduced' >reduced
settings 2 0 true
train cut 2
same cut two
counted
groups | grep '^tensors reduced' | cmp - reduced || fail "sums have other bytes: $(groups)"
grep -q '^sequence_parallel: each of 2 tensor ranks has 256 of a micro batch.s 512 tokens in norms' \
    err || fail "the layout is not said"
[ "$(activations 2)" -lt "$whole" ] || fail "activations: $(activations 2) of $whole"
settings 2 3 true
train shards 4
same shards two
counted
settings 2 1 true ', "pipeline": {"enabled": true, "stages": 2}'
train staged 4
same staged two
settings 4 0 false
train wide 4
settings 4 2 true
train wide-cut 4
same wide-cut wide
counted

lora='{"r": 4, "lora_alpha": 8, "lora_dropout": 0.1, "target_modules": "all-linear"}'
settings 2 0 false
train lora 2 --lora "$lora"
settings 2 3 true
train lora-cut 4 --lora "$lora"
cmp lora/adapter_model.safetensors lora-cut/adapter_model.safetensors || fail "lora: other bits"
counted

# Inputs of blocks cut instead, by DeepSpeed's keys.
keys='"partition_activations": true, "cpu_checkpointing": true'
settings 2 1 false ", \"activation_checkpointing\": {$keys, \"contiguous_memory_optimization\": true,
 \"number_checkpoints\": 2}"
train parts 4
same parts two
counted
settings 2 0 true ", \"activation_checkpointing\": {$keys}"
train idle 2
same idle two
grep -q 'partition_activations has no effect: sequence_parallel has cut them already' err ||
    fail "that it is idle is not said"

# on NAME FROM ROWS
on() {
    cp -r "$2" "$1"
    rm -r "$1/checkpoint-6"
    settings 2 0 "$3"
    train "$1" 2 --resume
    same "$1" two
    ! grep -q 'results will differ' err || fail "$1: $(grep differ err)"
}
on without cut false
on with two true

# refused RANKS TEXT [OPTIONS]
refused() {
    ranks=$1 text=$2
    shift 2
    $launcher -np "$ranks" "$SIFR" train --config ds.json --model model --data text \
        --output refused "$@" >out 2>err && fail "not refused: $text"
    grep -q "$text" err || fail "no '$text'"
}
settings 2 0 true
refused 2 'a micro batch has 4 sequences of 96 tokens, which are not divided among 2 tensor ranks in whole runs of 128; give sizes that make 256 tokens' --seq-length 96
settings 2 0 true '' ', "tp_exact": 2'
refused 2 'sifr.sequence_parallel: sifr.tp_exact is not supported with it yet'
settings 2 0 true '' ', "context_parallel": {"size": 2}'
refused 4 'sifr.sequence_parallel: context_parallel (context ranks) is not supported with it yet'
sed -i '/tensor_parallel/d' ds.json
settings 1 0 true
refused 1 'sifr.sequence_parallel: there are no tensor ranks to divide tokens among'
