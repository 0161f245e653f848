# `--ema-decay`: a run leaves the average of its weights as a model folder, the same bytes at every
# stage, rank count and after a resume; what has no average is refused.
# label: full, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/small_llama.sh"
llama_model llama 48 2 false

cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "sifr": {"seq_length": 32, "ema": {"decay": 0.5}}}
J
train() { # OUTPUT RANKS STAGE STEPS OPTION…
    sed "s/\"optimizer\"/\"zero_optimization\": {\"stage\": $3}, \"optimizer\"/" ds.json >run.json
    expect 0 "$SIFR" train --config run.json --model llama --data text --output "$1" --ranks "$2" \
        --max-steps "$4" --threads 1 "${@:5}"
}

# --- the same folder everywhere ---
train one 1 0 4
for file in model.safetensors config.json tokenizer.json; do
    [ -f one/ema/$file ] || fail "one/ema/$file is missing: $(ls one/ema)"
done
[ ! -e one/ema.incomplete ] || fail "one/ema.incomplete is left"
cmp -s one/model.safetensors one/ema/model.safetensors && fail "the average is the model"
train three 4 3 4
cmp one/ema/model.safetensors three/ema/model.safetensors || fail "stage 3 on 4 ranks differs"
train cut 2 1 2
train cut 1 0 4 --resume
cmp one/ema/model.safetensors cut/ema/model.safetensors || fail "a resumed run differs"

# --- a checkpoint has it, too ---
expect 0 "$SIFR" export --ema three/checkpoint-4 exported
for file in model.safetensors config.json tokenizer.json; do
    cmp one/ema/$file exported/$file || fail "export --ema: $file differs"
done
expect 2 "$SIFR" export --ema one exported-2
grep -q "one: no checkpoint of a run" err || fail "$(cat err)"
expect 2 "$SIFR" export --ema --format gguf one/checkpoint-4 exported-2
grep -q -- "--ema is for --format hf" err || fail "$(cat err)"

# --- it is a model: after one step that of the run ---
train first 1 0 1
cmp first/model.safetensors first/ema/model.safetensors || fail "the average of one step differs"
expect 0 "$SIFR" eval --model one/ema --data text --seq-length 32 --max-windows 3

# --- a run without it leaves none, and goes on only without it ---
expect 0 "$SIFR" train --config ds.json --model llama --data text --output plain --max-steps 2 \
    --ema-decay 0
[ ! -e plain/ema ] || fail "plain/ema is there"
expect 1 "$SIFR" export --ema plain/checkpoint-2 exported-2
grep -q "the run kept no average of its weights" err || fail "$(cat err)"
expect 2 "$SIFR" train --config ds.json --model llama --data text --output plain --max-steps 4 \
    --resume
grep -q 'has the state of another optimizer (exp_avg, exp_avg_sq) than AdamW with ema' err ||
    fail "$(cat err)"

# --- refused ---
expect 2 "$SIFR" train --config ds.json --model llama --data text --output no --max-steps 1 \
    --ema-decay 1
grep -q -- '--ema-decay must be a number from 0 to below 1' err || fail "$(cat err)"
for type in AdamW8bit AdamWScheduleFree; do
    sed "s/\"AdamW\"/\"$type\"/" ds.json >other.json
    expect 2 "$SIFR" train --config other.json --model llama --data text --output no --max-steps 1
    grep -q "sifr.ema.decay is 0.5: an average of the weights is not supported yet with $type" err ||
        fail "$(cat err)"
done
[ ! -e no ] || fail "a refused run left its output"
