# Folders whose matrices are in 8 bits through the program (tests/golden/make_fp8.py): they train to
# the same bits on 1, 2 and 4 ranks; what is written is BF16 without quantization_config, and all else
# in config.json stays; without updates it is what was read; as a base of LoRA, coded to NF4 too; GGUF.
# label: full; timeout: 120, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/ranks.sh"
STORE_WORDS=40
. "$SOURCE/tests/support/small_store.sh"

settings() { # STAGE RATE MORE
    echo '{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
 "optimizer": {"type": "AdamW", "params": {"lr": '"$2"', "weight_decay": 0}},
 "zero_optimization": {"stage": '"$1"'},
 "sifr": {"seq_length": 32, "max_steps": 2, "logging_steps": 1'"$3"'}}'
}
train() { # CONFIG MODEL OUTPUT OPTION…
    expect "${code:-0}" "$SIFR" train --config "$1" --data store --model "$2" --threads 1 --output "${@:3}"
}
settings 0 3e-3 "" >ds0.json
settings 3 3e-3 "" >ds3.json
settings 0 0 "" >still.json
settings 0 1e-2 ', "lora": {"r": 2, "lora_alpha": 4}' >lora.json
settings 0 1e-2 ', "lora": {"r": 2, "lora_alpha": 4}, "quantization": {"load_in_4bit": true,
 "bnb_4bit_quant_type": "nf4"}' >qlora.json

for kind in blocks tensor; do
    base=$SOURCE/tests/golden/fp8/$kind
    train ds0.json "$base" $kind-1
    grep -q "14 matrices of 8 bits (F8_E4M3) are read as BF16" out err || fail "$kind: not said"
    train ds3.json "$base" $kind-4 --ranks 4
    cmp $kind-1/model.safetensors $kind-4/model.safetensors || fail "$kind: 4 ranks have other bits"
    sed '/"quantization_config": {/,/^  }/d; s/^  "pad_token_id": null,$/&/' "$base/config.json" >plain
    grep -q quantization $kind-1/config.json && fail "$kind: quantization_config is left"
    tr -d ' \n,}' <plain >a
    tr -d ' \n,}' <$kind-1/config.json >b
    cmp a b || fail "$kind: other keys of config.json have changed"

    train still.json "$base" $kind-still
    for folder in "$base" $kind-still; do
        expect 0 "$SIFR" eval --data store --seq-length 32 --max-windows 2 --model "$folder"
        grep -o 'loss [0-9.]*' out
    done | uniq -c | grep -q '^ *2 loss' || fail "$kind: what was read is not what was written"
    train ds0.json $kind-still $kind-plain
    cmp $kind-1/model.safetensors $kind-plain/model.safetensors || fail "$kind: BF16 has other bits"
done
train ds3.json "$SOURCE/tests/golden/fp8/blocks" two --ranks 2
cmp blocks-1/model.safetensors two/model.safetensors || fail "2 ranks have other bits"

for how in lora qlora; do
    train $how.json "$SOURCE/tests/golden/fp8/blocks" $how-8
    train $how.json blocks-still $how-16
    cmp $how-8/adapter_model.safetensors $how-16/adapter_model.safetensors ||
        fail "$how: another adapter than on BF16"
done
for base in "$SOURCE/tests/golden/fp8/blocks" blocks-still; do
    expect 0 "$SIFR" merge "$base" lora-8 merged-"$(basename "$base")"
done
cmp merged-blocks/model.safetensors merged-blocks-still/model.safetensors || fail "merge"
grep -q quantization merged-blocks/config.json && fail "merge: quantization_config is left"

# A frozen weight is read from the base, also by an export of the checkpoint.
settings 0 3e-3 ', "freeze": ["model.layers.0.*"]' >frozen.json
train frozen.json "$SOURCE/tests/golden/fp8/blocks" frozen --save-steps 2
expect 0 "$SIFR" export frozen/checkpoint-2 exported
cmp frozen/model.safetensors exported/model.safetensors || fail "export of frozen weights"

cp -r "$SOURCE/tests/golden/fp8/blocks" other
sed -i 's/"quant_method": "fp8"/"quant_method": "gptq"/' other/config.json
code=2 train ds0.json other none
grep -q 'quantised by "gptq" are not read' err || fail "gptq is not refused by name"
