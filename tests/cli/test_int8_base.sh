# Adapters over weights in 8 bits (zero_quantized_nontrainable_weights), as a user trains them: the
# same bits at every stage and number of ranks, and when resumed by another number; what a run
# takes; an adapter folder that every command reads; and what is refused. That the numbers are those
# of the values that codes stand for is tested in tests/engine/test_coded.c.
# timeout: 300
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/two_models.sh"
seq 1 4000 | awk '{ print "line", $1 % 37, "of", $1 % 11, "things." }' >text
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >/dev/null
two_models 64
lora='"lora": {"r": 4, "lora_alpha": 8, "target_modules": "all-linear", "init_lora_weights": false}'
config() { # STAGE [KEYS OF zero_optimization] [KEYS OF sifr] [MORE]
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 0.05,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.1}}, ${4:-}
 "zero_optimization": {"stage": $1${2-, "zero_quantized_nontrainable_weights": true}},
 "sifr": {"seq_length": 32, "max_steps": 4, "save_steps": 2, ${3-$lora}}}
J
}
train() { # OUT OPTION...
    local out=$1
    shift
    rm -rf "$out"
    expect 0 "$SIFR" train --config ds.json --data text --threads 1 --output "$out" --model llama "$@"
}
hash_of() { sha256sum <"$1/adapter_model.safetensors"; }

for precision in "" --bf16; do
    config 0
    train one $precision
    grep -q '^zero_quantized_nontrainable_weights: 14 frozen matrices are held in 8 bits' out ||
        fail "not said: $(cat out)"
    want=$(hash_of one)
    for how in 1:2 3:2 3:4; do
        config ${how%:*}
        train many $precision --ranks "${how#*:}"
        [ "$(hash_of many)" = "$want" ] || fail "$precision stage:ranks $how: other bits"
    done
done
key=', "zero_quantized_nontrainable_weights": true'
config 3 "$key, \"zero_quantized_weights\": true, \"zero_hpz_partition_size\": 2"
train many --bf16 --ranks 4 # of what is trained, gathers have 8 bits, and so other bits
[ "$(hash_of many)" != "$want" ] || fail "with qwZ: the bits of none"

config 0
train one
want=$(hash_of one)
config 0 ""
train lora
[ "$(hash_of lora)" != "$want" ] || fail "codes change nothing"

# Resumed by other ranks; a checkpoint says what its base was.
config 0
train resumed --max-steps 2 --ranks 2
config 3
expect 0 "$SIFR" train --config ds.json --data text --threads 1 --output resumed --model llama \
    --resume --ranks 4
[ "$(hash_of resumed)" = "$want" ] || fail "resumed with other ranks: other bits"
config 0 ""
expect 2 "$SIFR" train --config ds.json --data text --output one --model llama --resume --max-steps 6
grep -q 'quantization' err || fail "other codes: says $(cat err)"

# Planned: a matrix takes (1 + 4 / 1,024) bytes a weight, in whole records of 16,384. In fp32 the
# codes and what they stand for are less than the weights.
config 0
expect 0 "$SIFR" plan --config ds.json --model llama --json
tr -d '\n' <out >plan
grep -q '"decoded": *[1-9]' plan || fail "decoded: $(cat plan)"
expect 0 "$SIFR" plan --config ds.json --model llama --fit --json

# The adapter's folder is as any: it evaluates, generates, merges, and goes on.
loss() { "$SIFR" eval --data text --seq-length 32 "$@" 2>/dev/null | grep -o 'loss [0-9.]*'; }
own=$(loss --model llama --adapter one)
[ -n "$own" ] && [ "$own" != "$(loss --model llama)" ] || fail "the adapter changes nothing"
expect 0 "$SIFR" merge llama one merged
[ "$(loss --model merged)" = "$own" ] || fail "merged: another loss"
expect 0 "$SIFR" generate --model one --prompt "line 3" --max-new-tokens 4
config 0 "$key" '"threads": 1'
expect 0 "$SIFR" train --config ds.json --data text --output on --model llama --adapter one

refused() { # PATTERN
    rm -rf no
    expect 2 "$SIFR" train --config ds.json --data text --output no --model llama
    grep -Eq "$1" err || fail "says $(cat err), not $1"
}
config 0 "$key" '"threads": 1'
refused 'zero_quantized_nontrainable_weights: weights in 8 bits are not trained.*give sifr.lora'
nf4='"quantization": {"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"}'
config 0 "$key" "$lora, $nf4"
refused 'in 8 bits, and sifr.quantization in 4; leave one of both out'
