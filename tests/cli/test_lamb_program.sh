# LAMB by the program, with groups of settings and an average of the weights: the same bytes on ranks,
# stages of a pipeline, after a resume and with its state on a disk.
# label: full, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/small_llama.sh"
llama_model llama 48 2 true

settings() { # STAGE
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "Lamb", "params": {"lr": 3e-3, "weight_decay": 0.1}},
 "zero_optimization": {"stage": $1},
 "sifr": {"seq_length": 32, "no_decay": "transformers", "layer_decay": 0.8, "ema": {"decay": 0.5}}}
J
}
train() { # OUTPUT RANKS STAGE STEPS OPTION…
    settings "$3"
    train_llama 0 "$1" "$2" --max-steps "$4" "${@:5}"
}
same() { # OUTPUT
    for file in model.safetensors ema/model.safetensors; do
        cmp one/$file "$1/$file" || fail "$1: $file differs"
    done
}

train one 1 0 3
train four 4 3 3
same four
for stage in 0 1; do
    train stages-$stage 4 $stage 3 --pipeline-stages 2
    same stages-$stage
done
train cut 4 1 2 --pipeline-stages 2
train cut 2 2 3 --resume
same cut

for run in 1-0 2-2 4-3; do
    settings ${run#*-}
    train_on_disk ${run#*-} disk-$run ${run%-*} --max-steps 3
    same disk-$run
done
