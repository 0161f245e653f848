# A disk that is full when a checkpoint is due, and later is not: the run says so and goes on, and
# the next checkpoint is whole. One that stays full to the end takes the last checkpoint, not the
# trained model. Where it is full before, the run does not start. The disk is a small
# tmpfs in a namespace of the test's own.
# label: full; timeout: 300
. "$SOURCE/tests/support/small_disk.sh" 6m

yes "the cat sat on a mat and saw that dog run over my big red house" | head -2000 >text
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >/dev/null
cat >llama.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
 "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 128}
J
"$SIFR" init --config llama.json --tokenizer tok --output llama --seed 3 >/dev/null
cat >ds.json <<'J'
{"train_batch_size": 2, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
 "sifr": {"seq_length": 32, "max_steps": 100000, "save_steps": 3, "save_total_limit": 1}}
J
. "$SOURCE/tests/support/until_it.sh"

# Leaves so many KiB free, whatever the run frees meanwhile, until it has refused a checkpoint.
fill() {
    full() {
        local free
        free=$(df --output=avail -k disk | tail -n 1)
        [ "$free" -le $1 ] || dd if=/dev/zero bs=1024 count=$((free - $1)) 2>/dev/null >>disk/filler
        grep -q "no checkpoint (.* of free disk" err
    }
    until_it full $1
    full $1
}

ranks="1"
"$SIFR" doctor --json | grep -q '"launcher": "' && ranks="1 2"
for n in $ranks; do
    rm -rf disk/*
    dd if=/dev/zero of=disk/filler bs=1024 count=4700 2>/dev/null
    code=0
    "$SIFR" train --config ds.json --model llama --data text --output disk/out --threads 1 \
        --ranks $n >log 2>err || code=$?
    [ $code = 3 ] || fail "$n ranks: full before the run: exit code $code"
    grep -q "^sifr train: disk: disk/out: a checkpoint takes " err ||
        fail "$n ranks: it is not said"
    rm disk/filler
    "$SIFR" train --config ds.json --model llama --data text --output disk/out --threads 1 \
        --ranks $n >log 2>err &
    run=$!
    until_it test -e disk/out/latest
    free=$(df --output=avail -k disk | tail -n 1) # a little is left for the run's figures
    dd if=/dev/zero of=disk/filler bs=1024 count=$((free > 600 ? free - 600 : 0)) 2>/dev/null || :
    until_it grep -q "no checkpoint (.* of free disk" err
    failed=$(sed -n 's/.*step \([0-9]*\): no checkpoint (.* of free disk.*/\1/p' err | head -n 1)
    [ ! -e "disk/out/checkpoint-$failed" ] || fail "$n ranks: something is left of a checkpoint"
    rm disk/filler
    newer() { [ "$(sed 's/checkpoint-//' disk/out/latest)" -gt "$failed" ]; }
    until_it newer
    kill -TERM $run
    code=0
    wait $run || code=$?
    [ $code = 143 ] || fail "$n ranks: exit code $code"
    grep -q "of free disk" err || fail "$n ranks: the reason is not said"
    steps=$(sed 's/checkpoint-//' disk/out/latest)
    "$SIFR" train --config ds.json --model llama --data text --output disk/out --threads 1 \
        --resume --max-steps $((steps + 2)) >log 2>err ||
        fail "$n ranks: what was saved does not load"
    cat log err | grep -q "resumed from checkpoint-$steps" || fail "$n ranks: not from step $steps"

    # Full to the end: room for the model and not for a checkpoint beside it.
    rm -rf disk/*
    "$SIFR" train --config ds.json --model llama --data text --output disk/out --threads 1 \
        --ranks $n --save-steps 100 --logging-steps 100 --max-steps 2000 >log 2>err &
    run=$!
    until_it test -e disk/out/latest
    fill 1100
    kept=$(cat disk/out/latest)
    code=0
    wait $run || code=$?
    [ $code = 0 ] || fail "$n ranks: full to the end: exit code $code"
    grep -q "no checkpoint (.* of free disk, and .* are kept for the trained model: " err ||
        fail "$n ranks: the model's room is not kept"
    grep -q "warning: step 2000: the model is written, but no checkpoint (.* of free disk: " err ||
        fail "$n ranks: it is not said that the last checkpoint is missing"
    [ ! -e disk/out/checkpoint-2000 ] || fail "$n ranks: there was room for a checkpoint"
    [ -e "disk/out/$kept" ] || fail "$n ranks: an older checkpoint went"
    "$SIFR" eval --model disk/out --data text --seq-length 32 --max-windows 2 >log 2>err ||
        fail "$n ranks: the model does not open"
    [ -z "$(find disk -name '*.tmp-*')" ] || fail "$n ranks: left behind: $(find disk)"
done

# Not even for the model: that is said, with what holds the weights.
rm -rf disk/*
"$SIFR" train --config ds.json --model llama --data text --output disk/out --threads 1 \
    --save-steps 100 --logging-steps 100 --max-steps 2000 >log 2>err &
run=$!
until_it test -e disk/out/latest
fill 0
code=0
wait $run || code=$?
[ $code = 1 ] || fail "no room for the model: exit code $code"
grep -q "the model is not written: .*; nor is its last checkpoint; free some disk space and give --resume" err ||
    fail "it is not said that the model is not written"
grep -q "warning: disk/out/metrics.jsonl: cannot write: No space left on device; the run goes on" \
    err || fail "records that cannot be written: it is not said"
rm disk/filler
"$SIFR" train --config ds.json --model llama --data text --output disk/out --threads 1 --resume \
    --save-steps 100 --logging-steps 100 --max-steps 2000 >log 2>err || fail "it does not go on"
[ -e disk/out/model.safetensors ] || fail "no model after that"

# Steps that are known only when the text is read.
rm -rf disk/*
sed 's/"max_steps": 100000, "save_steps": 3, "save_total_limit": 1/"save_steps": 3/' ds.json >epochs.json
code=0
"$SIFR" train --config epochs.json --model llama --data text --output disk/out --threads 1 \
    >log 2>err || code=$?
[ $code = 3 ] || fail "a checkpoint each 3 steps of an epoch: exit code $code"
all="all [0-9]* of them (no save_total_limit), the trained model .*; free some, keep fewer"
grep -q "^sifr train: disk: disk/out: a checkpoint takes .*, $all" err || fail "it is not said"
[ -z "$(ls disk)" ] || fail "left behind: $(find disk)"
