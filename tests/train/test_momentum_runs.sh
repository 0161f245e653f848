# OneCycle moves the betas of a training run: with both momenta at 0.9 it has the bits of a run with
# betas 0.9 and 0.99 under the same rates; with its own, others. A resumed run, a run of several
# ranks and one whose updates the next step carries out have the same bits as any.
# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/disk_runs.sh"
sed 's/"num_hidden_layers": 3/"num_hidden_layers": 6/' llama.json >deep.json
"$SIFR" init --config deep.json --tokenizer tok --output deep --seed 3 >log
betas='"betas": [0.9, 0.999]' device=none
config() { # MOMENTUM
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.01, $betas}},
 "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-3, "cycle_max_lr": 5e-3,
               "cycle_first_step_size": 3, "cycle_second_step_size": 2, "decay_step_size": 2, $1}},
 "zero_optimization": {"stage": 1, "sub_group_size": 20000,
                       "offload_optimizer": {"device": "$device", "nvme_path": "nvme"}},
 "sifr": {"seq_length": 64, "max_steps": 8, "save_steps": 4}}
J
}
train() { # OUTPUT RANKS OPTION...
    "$SIFR" train --config ds.json --model deep --data text --output "$1" --ranks $2 --threads 1 \
        "${@:3}" >log 2>err || fail "$*: $(cat err)"
}
same() { cmp "$1/model.safetensors" "$2/model.safetensors" || fail "$3: other weights"; }

moving='"cycle_min_mom": 0.7, "cycle_max_mom": 0.85, "decay_mom_rate": 0.05'
config '"cycle_min_mom": 0.9, "cycle_max_mom": 0.9'
train level 1
betas='"betas": [0.9, 0.99]'
config '"cycle_momentum": false'
train plain 1
same level plain "momenta of 0.9"
config "$moving"
train cycle 1
cmp -s cycle/model.safetensors plain/model.safetensors && fail "momenta make no difference"
grep -q "beta" err && fail "betas of the config say something: $(cat err)"

train early 1 --max-steps 4
train early 1 --resume
same early cycle "resumed"
for n in $(ranks_of 1 2); do
    train ranks-$n $n
    same ranks-$n cycle "$n ranks"
    device=nvme
    config "$moving"
    "$SIFR" plan --config ds.json --model deep --world-size $n --dump >plan
    grep -q "update .*(of the step before)" plan || fail "$n ranks: nothing is deferred"
    train deferred-$n $n
    same deferred-$n cycle "$n ranks, deferred"
    device=none
    config "$moving"
done

# A run whose first beta would reach 1 is refused before it begins.
config '"cycle_min_mom": 0.7, "cycle_max_mom": 0.85, "decay_mom_rate": 0.2'
code=0
"$SIFR" train --config ds.json --model deep --data text --output high --threads 1 >log 2>err || code=$?
[ $code = 2 ] || fail "a beta of 1: exit code $code"
grep -q '^sifr train: scheduler.params.decay_mom_rate 0.2: the first beta grows to 1.02 by step 8' err ||
    fail "$(cat err)"
[ ! -e high ] || fail "the output was touched"
"$SIFR" train --config ds.json --model deep --data text --output high --threads 1 --max-steps 7 \
    >log 2>err || fail "a beta below 1: $(cat err)"
