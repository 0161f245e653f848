# Muon by the program, with Adam at another rate and groups of settings: the same bytes on 1, 2 and 4
# ranks at every stage, in stages of a pipeline, after a resume and with its state on a disk; an
# average of the weights is refused.
# label: full, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/small_llama.sh"
llama_model llama 48 2 true

settings() { # STAGE
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "Muon", "params": {"lr": 1e-2, "weight_decay": 0.1, "adam_lr": 3e-3}},
 "zero_optimization": {"stage": $1},
 "sifr": {"seq_length": 32, "no_decay": "transformers", "layer_decay": 0.8}}
J
}
train() { # OUTPUT RANKS STAGE STEPS OPTION…
    settings "$3"
    train_llama 0 "$1" "$2" --max-steps "$4" "${@:5}"
}
same() { # OUTPUT
    cmp one/model.safetensors "$1/model.safetensors" || fail "$1 differs"
}

train one 1 0 3
for ranks in 2 4; do
    for stage in 0 1 2 3; do
        train "r$ranks-$stage" "$ranks" "$stage" 3
        same "r$ranks-$stage"
    done
done
for stage in 0 1; do
    train stages-$stage 4 $stage 3 --pipeline-stages 2
    same stages-$stage
done
train cut 4 3 1
train cut 2 2 2 --resume
train cut 1 0 3 --resume
same cut

for run in 1-0 2-2 4-3; do
    settings ${run#*-}
    train_on_disk ${run#*-} disk-$run ${run%-*} --max-steps 3
    same disk-$run
done
train_llama 2 no 1 --max-steps 1 --ema-decay 0.5
grep -q 'an average of the weights is not supported yet with Muon' err || fail "$(cat err)"
