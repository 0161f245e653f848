# Adapters over weights in 4 bits, as a user trains them: the same bits at every stage and number of
# ranks, and when resumed by another number; what a run takes; an adapter folder that every command
# reads; and what is refused. That the numbers are those of bitsandbytes and PEFT is tested in
# tests/engine/test_golden_lora.c, that codes are held in tests/engine/test_coded.c.
# timeout: 300
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/two_models.sh"
seq 1 4000 | awk '{ print "line", $1 % 37, "of", $1 % 11, "things." }' >text
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >/dev/null
two_models 64
nf4='"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"'
double="$nf4, \"bnb_4bit_use_double_quant\": true"
lora='"r": 4, "lora_alpha": 8, "target_modules": "all-linear", "init_lora_weights": false'
config() { # KEYS OF QUANTIZATION [KEYS OF LORA] [MORE] [MORE OF zero_optimization]
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 0.05,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.1}},
 "zero_optimization": {"stage": 0${4:-}}, ${3:-}
 "sifr": {"seq_length": 32, "max_steps": 4, "save_steps": 2, "lora": {${2:-$lora}},
          "quantization": {$1}}}
J
}
train() { # OUT OPTION...
    local out=$1
    shift
    rm -rf "$out"
    expect 0 "$SIFR" train --config ds.json --data text --threads 1 --output "$out" --model llama "$@"
}
hash_of() { sha256sum <"$1/adapter_model.safetensors"; }

for keys in "$double" "$nf4"; do
    for precision in "" --bf16; do
        config "$keys"
        train one $precision
        want=$(hash_of one)
        for how in 1:2 2:2 2:4 3:2 3:4; do
            sed "s/\"stage\": 0/\"stage\": ${how%:*}/" ds.json >other.json
            rm -rf many
            expect 0 "$SIFR" train --config other.json --data text --threads 1 --output many \
                --model llama $precision --ranks "${how#*:}"
            [ "$(hash_of many)" = "$want" ] || fail "$keys $precision stage:ranks $how: other bits"
        done
        train many $precision --recompute unit
        [ "$(hash_of many)" = "$want" ] || fail "$keys $precision recomputed: other bits"
    done
done

# It is another training than over the weights themselves, or over other codes.
config "$double"
train one
want=$(hash_of one)
grep -q '^QLoRA: 14 frozen matrices are held in 4 bits (NF4)$' out || fail "not said: $(cat out)"
config "$nf4"
train plain
[ "$(hash_of plain)" != "$want" ] || fail "double quantization changes nothing"
sed -i '/"quantization"/d; s/"lora": {\(.*\)},$/"lora": {\1}}}/' ds.json
train lora
[ "$(hash_of lora)" != "$want" ] || fail "codes change nothing"

# Resumed by other ranks; a checkpoint holds the adapters' state alone, and says what its base was.
config "$double"
sed 's/"stage": 0/"stage": 3/' ds.json >other.json
rm -rf resumed
expect 0 "$SIFR" train --config ds.json --data text --threads 1 --output resumed --model llama \
    --max-steps 2 --ranks 2
expect 0 "$SIFR" train --config other.json --data text --threads 1 --output resumed --model llama \
    --resume --ranks 4
[ "$(hash_of resumed)" = "$want" ] || fail "resumed with other ranks: other bits"
bytes=$(cat one/checkpoint-4/*.safetensors | wc -c)
[ "$bytes" -lt 200000 ] || fail "a checkpoint of $bytes bytes"
config "$nf4"
expect 2 "$SIFR" train --config ds.json --data text --output one --model llama --resume --max-steps 6
grep -q 'quantization' err || fail "other codes: says $(cat err)"

# Planned to the byte: 2 blocks of 7 matrices, each in one record of 8,456 bytes; in bf16 the
# embedding and the head (300 x 64 each, in blocks of 1,024) and 5 norms of 64.
config "$double" "" '"bf16": {"enabled": true},'
expect 0 "$SIFR" plan --config ds.json --model llama --json
tr -d '\n' <out >plan
grep -q '"decoded": *229376,' plan || fail "decoded: $(cat plan)"
expect 0 "$SIFR" plan --config ds.json --model llama --fit --json

# The adapter's folder is as any: it evaluates, generates, merges and goes on, over the base's own
# weights.
loss() { "$SIFR" eval --data text --seq-length 32 "$@" 2>/dev/null | grep -o 'loss [0-9.]*'; }
own=$(loss --model llama --adapter one)
[ -n "$own" ] && [ "$own" != "$(loss --model llama)" ] || fail "the adapter changes nothing"
expect 0 "$SIFR" merge llama one merged
[ "$(loss --model merged)" = "$own" ] || fail "merged: another loss"
expect 0 "$SIFR" generate --model one --prompt "line 3" --max-new-tokens 4
sed 's/, "lora": {.*}}*,$/,/' ds.json >on.json
expect 0 "$SIFR" train --config on.json --data text --output on --model llama --adapter one
grep -q '^QLoRA: 14 frozen' out || fail "not said: $(cat out)"

# Codes on disk.
mkdir -p swap
config "$double" "" "" ', "offload_param": {"device": "nvme", "nvme_path": "swap"}'
sed -i 's/"stage": 0/"stage": 3/' ds.json
for ranks in 1 2; do
    rm -rf many
    expect 0 "$SIFR" train --config ds.json --data text --threads 1 --output many --model llama \
        --ranks $ranks
    [ "$(hash_of many)" = "$want" ] || fail "codes on disk, $ranks ranks: other bits"
done

# Evaluated within the run: the codes' model, whose loss differs from that of the base's weights.
config "$double"
expect 0 "$SIFR" train --config ds.json --data text --threads 1 --output evaluated --model llama \
    --eval-data text --max-eval-windows 4
grep -q 'eval' out || fail "no evaluation: $(cat out)"

# Refused, by name.
refused() { # PATTERN KEYS [LORA] [MORE] [ZERO]
    config "$2" "${3:-}" "${4:-}" "${5:-}"
    rm -rf no
    expect 2 "$SIFR" train --config ds.json --data text --output no --model "${model:-llama}"
    grep -Eq "$1" err || fail "$2: says $(cat err)"
}
refused 'sifr.quantization: load_in_4bit is not true' '"bnb_4bit_quant_type": "nf4"'
refused 'sifr.quantization: bnb_4bit_quant_type fp4, the default, is not built' '"load_in_4bit": true'
refused 'sifr.quantization: load_in_8bit is not built' '"load_in_8bit": true'
refused 'sifr.quantization: lod_in_4bit is no key of BitsAndBytesConfig; did you mean load_in_4bit' \
    '"lod_in_4bit": true'
refused 'bnb_4bit_compute_dtype is bf16, but the run computes in fp32' \
    "$nf4, \"bnb_4bit_compute_dtype\": \"bfloat16\""
model=gpt2 refused 'sifr.quantization: .*c_attn.weight is stored transposed' "$nf4" '"r": 4'
config "$nf4"
sed -i 's/"lora": {.*},$//; s/"save_steps": 2,/"save_steps": 2,/' ds.json
expect 2 "$SIFR" train --config ds.json --data text --output no --model llama
grep -q 'weights in 4 bits are not trained; give sifr.lora' err || fail "alone: says $(cat err)"
