# Gemma 4's text model through the program, with its two kinds of heads: the same bits at 1, 2 and 4
# ranks, all stages of ZeRO, with pipeline stages, recomputation and tiles; a resumed run; an export
# of a checkpoint; adapters, which leave layer_scalar alone; layer_scalar to the last bit in another
# training type. A released size is planned by its name. 26B-A4B's keys are refused by name. Folders
# with a tower are in test_multimodal_runs.sh, E2B and E4B in test_gemma4_shared.sh.
# label: full; timeout: 120, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/ranks.sh"
trap 'kill $(jobs -p) 2>/dev/null || :; wait || :' EXIT

STORE_WORDS=23
. "$SOURCE/tests/support/small_store.sh"
for stage in 0 1 2 3; do
    cat >ds$stage.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.1}},
 "zero_optimization": {"stage": $stage},
 "sifr": {"seq_length": 40, "max_steps": 2, "logging_steps": 1}}
J
done
sed 's/"train_batch_size": 4/"train_batch_size": 1/' ds0.json >dslong.json
train() { # CONFIG OUTPUT OPTION...
    expect 0 "$SIFR" train --config ds$1.json --data store --model base --threads 1 --output "${@:2}"
}
same() { cmp "$1/model.safetensors" "$2/model.safetensors" || fail "$name: $2: other weights"; }
# scalars FILE: the bytes of all tensors whose name ends in layer_scalar
scalars() {
    local size from to
    size=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    tail -c +9 "$1" | head -c "$size" | grep -o '"[a-z_0-9.]*layer_scalar": *{[^}]*}' | sort |
        sed 's/.*"data_offsets": *\[\([0-9]*\), *\([0-9]*\)\].*/\1 \2/' | while read -r from to; do
        tail -c +$((9 + size + from)) "$1" | head -c $((to - from)) | od -An -tx1
    done
}

for name in gemma4_text gemma4_text-published; do
    folder=$SOURCE/tests/golden/gemma4/models/$name
    rm -rf base one ?:* exported whole tiles
    cp -r "$folder" base
    train 0 one --save-steps 1
    for run in 1:3:unit 2:1:none 2:2:unit 4:3:none; do
        [ $name = gemma4_text ] || [ $run = 2:2:unit ] || continue
        IFS=: read -r ranks stage recompute <<<"$run"
        train "$stage" $run --ranks "$ranks" --recompute "$recompute"
        same one $run
    done
    train 0 2:stages --ranks 2 --pipeline-stages 2
    same one 2:stages
    cmp base/config.json one/config.json || fail "$name: another config.json"
    scalars base/model.safetensors >before
    [ "$(wc -l <before)" -ge 2 ] || fail "$name: no layer_scalar"
    scalars one/model.safetensors | cmp before - || fail "$name: layer_scalar was trained"

    expect 0 "$SIFR" export one/checkpoint-2 exported
    same one exported
    train 0 half --max-steps 1 --save-steps 1
    train 0 half --max-steps 2 --resume
    same one half
    expect 0 "$SIFR" eval --model one --data store --seq-length 40 --max-windows 3

    train long whole --bf16 --seq-length 2048 --max-steps 1
    train long tiles --bf16 --seq-length 2048 --max-steps 1 --tile-tokens 1024
    same whole tiles
    scalars whole/model.safetensors | cmp before - || fail "$name: layer_scalar in bf16"
    rm -rf half
done

# Adapters: of the products that each kind of layer has.
rm -rf base adapted merged
cp -r "$SOURCE/tests/golden/gemma4/models/gemma4_text" base
sed 's/"logging_steps": 1/&, "lora": {"r": 2, "lora_alpha": 4, "target_modules": ["q_proj", "k_proj", "v_proj"]}/' \
    ds0.json >dsadapt.json
train adapt adapted
expect 0 "$SIFR" merge base adapted merged
scalars merged/model.safetensors >after
scalars base/model.safetensors | cmp - after || fail "merged: another layer_scalar"
loss() { expect 0 "$SIFR" eval --data store --seq-length 40 --max-windows 2 --model "$1" && grep -o 'loss [0-9]\.[0-9]*' out; }
loss merged >wanted
loss adapted >got
cmp wanted got || fail "$(cat wanted got)"
expect 0 "$SIFR" inspect base
grep -q 'global_head_dim *10' out && grep -q 'num_global_key_value_heads *1' out || fail "$(cat out)"

# Beside a tower PEFT's default, of the text part alone; layer 1 has no v_proj.
rm -rf adapted
mv base plain
cp -r "$SOURCE/tests/golden/gemma4/models/gemma4" base
sed 's/, "target_modules": \[[^]]*\]//' dsadapt.json >dsdefault.json
train default adapted
grep -qF '"target_modules": "model\\.language_model\\.layers\\.(?:\\d+\\.(?:self_attn\\.q_proj)|(?:0)\\.(?:self_attn\\.v_proj))"' \
    adapted/adapter_config.json || fail "$(cat adapted/adapter_config.json)"
rm -rf base
mv plain base

# A released size by its name, of which nothing is there; a folder of that name goes first.
echo '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}' >dsplan.json
plan() { "$SIFR" plan --config dsplan.json --model "$1" --world-size 64 --seq-length 512 >out 2>err || :; }
plan google/gemma-4-12b-it
grep -q '^model *gemma4_unified, 11,907,350,320 parameters' out || fail "$(cat out err)"
cp -r base gemma-4-12B
plan gemma-4-12B
grep -q '^model *gemma4_text, [0-9],[0-9]* parameters' out || fail "$(cat out err)"
expect 1 "$SIFR" train --config dsplan.json --model google/gemma-4-12B --data store --output never
grep -q 'google/gemma-4-12B: no such file or folder' err || fail "$(cat err)"

# The base of 26B-A4B.
sed 's/"enable_moe_block": false/"enable_moe_block": true/' base/config.json >experts.json
expect 2 "$SIFR" init --config experts.json --output made
grep -q '"enable_moe_block": true is not supported yet' err || fail "$(cat err)"
