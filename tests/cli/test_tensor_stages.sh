# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
# Tensor ranks with pipeline stages, the config that DeepSpeed's users publish among them: the bits
# of the same tensor ranks without stages, with every schedule, ZeRO stage and both step orders, on 8
# and 16 ranks; evaluation; what each axis moved is what was planned; a run goes on with other stages.
. "$SOURCE/tests/support/ranks.sh"
tiny_model
# settings TENSORS STAGES ZERO [PIPELINE [SIFR]]: ds.json
settings() {
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": $3},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "pipeline": {"enabled": true, "partition": "uniform", "stages": $2${4:-}},
 "tensor_parallel": {"enabled": true, "size": $1},
 "sifr": {"seq_length": 32, "max_steps": 4, "save_steps": 2, "eval_steps": 2${5:-}}}
J
}
train() { # RUN RANKS OPTION...
    run=$1 ranks=$2
    shift 2
    $launcher -np "$ranks" "$SIFR" train --config ds.json --model model --data text \
        --eval-data text --max-eval-windows 6 --json --output "$run" "$@" >out 2>err ||
        fail "$run: exit code $?: $(cat err)"
}
planned() { groups | awk '$3 != $4 { exit 1 }' || fail "$run: other bytes than planned: $(groups)"; }
settings 2 1 0
train two 2

settings 2 4 3 # as published
train eight 8
same eight two
planned
grep -q '^mesh: 4 stages x 2 tensors' err || fail "the mesh is not said: $(grep mesh err)"
train sixteen 16
same sixteen two
planned

for schedule in gpipe 1f1b interleaved zb-h1; do
    chunks=
    [ $schedule != interleaved ] || chunks=', "chunks": 2'
    settings 2 2 1 ', "schedule": "'$schedule'"'"$chunks" ', "recompute": "unit"'
    train $schedule 4
    same $schedule two
done
settings 2 2 2 '' ', "step_order": "batch"'
train batch 8
same batch two
settings 4 2 0 # two kv heads: the MLP alone is cut
train four 8
settings 4 1 0
train wide 4
same four wide

# On with other stages, and without.
on() { # NAME FROM TENSORS STAGES ZERO RANKS
    cp -r "$2" "$1"
    rm -r "$1/checkpoint-4"
    settings "$3" "$4" "$5"
    train "$1" "$6" --resume
    same "$1" two
}
on fewer eight 2 1 2 4
on more two 2 2 3 4
