# Adafactor by the program: the same bytes on 1, 2 and 4 ranks at every stage, on stages of a
# pipeline, after a resume at other ranks and with its state on a disk; the states in the checkpoint;
# the memory that is planned, which is that of no moments.
# label: full, timeout: 300, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/small_llama.sh"
llama_model llama 48 2 true

settings() { # STAGE PARAMS
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "Adafactor", "params": {$2}},
 "zero_optimization": {"stage": $1},
 "sifr": {"seq_length": 32, "no_decay": "transformers"}}
J
}
train() { # OUTPUT RANKS STEPS OPTION…
    train_llama 0 "$1" "$2" --max-steps "$3" "${@:4}"
}
same() { # OUTPUT
    cmp one/model.safetensors "$1/model.safetensors" || fail "$1: other weights"
}

# the Trainer's form, at every stage
form='"lr": 1e-2, "scale_parameter": false, "relative_step": false, "weight_decay": 0.1'
settings 0 "$form"
train one 1 3
for ranks in 2 4; do
    for stage in 0 1 2 3; do
        settings $stage "$form"
        train out-$ranks-$stage $ranks 3
        same out-$ranks-$stage
    done
done
settings 0 "$form"
train piped 4 3 --pipeline-stages 2
same piped

# transformers' own form, with a momentum: a run goes on at any number of ranks
form='"beta1": 0.9, "weight_decay": 0.1'
rm -r one
settings 0 "$form"
train one 1 3
settings 3 "$form"
train cut 4 1 --save-steps 1
settings 1 "$form"
train cut 2 2 --save-steps 1 --resume
settings 2 "$form"
train cut 1 3 --save-steps 1 --resume
same cut
for state in exp_avg exp_avg_sq_row exp_avg_sq_col; do
    grep -q "\"part\": *\"$state\"" cut/checkpoint-*/manifest.json || fail "no $state in the checkpoint"
done
for run in 1-0 2-2 4-3; do
    settings ${run#*-} "$form"
    train_on_disk ${run#*-} disk-$run ${run%-*} --max-steps 3
    same disk-$run
done
settings 1 '"lr": 1e-2, "relative_step": false'
train_llama 2 cut 1 --max-steps 4 --resume
grep -q 'has the state of another optimizer' err || fail "$(cat err)"

# what a step takes
llama_model large 384 4 true
moments() { # TYPE: bytes of its states
    sed "s/Adafactor/$1/" ds.json >other.json
    expect 0 "$SIFR" plan --config other.json --model large --threads 1
    sed -n 's/^moments *\([0-9]*\) .*/\1/p' out
}
settings 0 '"weight_decay": 0.1'
few=$(moments Adafactor)
many=$(moments AdamW)
echo "states: $few bytes, of AdamW $many"
[ $((few * 100)) -lt "$many" ] || fail "states take $few bytes, those of AdamW $many"
expect 0 "$SIFR" train --config ds.json --model large --data text --output mem --max-steps 2 \
    --threads 1 --json
number() { sed -n "s/^  \"$1\": \([0-9]*\).*/\1/p" out; }
planned=$(number planned_bytes)
measured=$(number measured_bytes)
difference=$((measured - planned))
echo "planned $planned, measured $measured"
[ "${difference#-}" -le $((planned / 50 + (6 << 20))) ] || # some MiB are the program's own
    fail "planned $planned, measured $measured"
