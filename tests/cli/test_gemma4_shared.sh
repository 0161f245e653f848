# Gemma 4 with shared keys and values and per-layer inputs, as E2B and E4B have them: the same bits at
# 1, 2 and 4 ranks, all stages of ZeRO, with every way of recomputation, tiles, each order of a step,
# tiers on a disk, and pipeline stages whose borders the shared values cross; a resumed run; adapters.
# Beside a tower, tensors of the released folders that transformers ignores are carried along. The
# released sizes are planned by name. What is not built is refused by name.
# label: full; timeout: 120, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/ranks.sh"
trap 'kill $(jobs -p) 2>/dev/null || :; wait || :' EXIT

golden=$SOURCE/tests/golden/gemma4/models
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
train() { # CONFIG OUTPUT OPTION...
    expect 0 "$SIFR" train --config ds$1.json --data store --model base --threads 1 --output "${@:2}"
}
same() { cmp one/model.safetensors "$1/model.safetensors" || fail "$1: other weights"; }

cp -r "$golden/gemma4_text-shared" base
train 0 one --save-steps 1
for run in 1:3:unit 2:1:none 2:2:unit 4:3:none; do
    IFS=: read -r ranks stage recompute <<<"$run"
    train "$stage" $run --ranks "$ranks" --recompute "$recompute"
    same $run
done

# Segments of units that begin before the layers whose keys are shared, and end behind them.
sed 's/"gradient_clipping"/"activation_checkpointing": {"partition_activations": false, "number_checkpoints": 2}, &/' \
    ds0.json >dssegments.json
train segments segments
same segments
sed 's/"logging_steps": 1/&, "step_order": "unit"/' ds0.json >dsunit.json
train unit unit --recompute unit
same unit
sed 's/"logging_steps": 1/&, "offload_activations": "nvme", "nvme_path": "disk"/; s/"stage": 3/&, "offload_param": {"device": "nvme", "nvme_path": "disk"}/' \
    ds3.json >dsdisk.json
mkdir disk
train disk disk-run --recompute unit
same disk-run

# Seven units and the head: stages end before, between and behind the layers that share. 4 x 1
# stages, then 2 stages of 2 ranks.
train 0 2:stages --ranks 2 --pipeline-stages 2
same 2:stages
for schedule in 1f1b zb-h1 interleaved; do
    sed 's/"sifr"/"pipeline": {"stages": 4, "schedule": "'$schedule'"}, &/' ds0.json >dsstages.json
    [ $schedule != interleaved ] || sed -i 's/"stages": 4/"stages": 2/; s/"stage": 0/"stage": 3/' dsstages.json
    train stages "4:$schedule" --ranks 4 --recompute unit
    same "4:$schedule"
done

expect 0 "$SIFR" export one/checkpoint-2 exported
same exported
train 0 half --max-steps 1 --save-steps 1
train 0 half --max-steps 2 --resume
same half
sed 's/"train_batch_size": 4/"train_batch_size": 1/' ds0.json >dslong.json
train long whole --bf16 --seq-length 2048 --max-steps 1
train long tiles --bf16 --seq-length 2048 --max-steps 1 --tile-tokens 1024
cmp whole/model.safetensors tiles/model.safetensors || fail "tiles: other weights"
expect 0 "$SIFR" inspect base
grep -q 'num_kv_shared_layers *3' out && grep -q 'hidden_size_per_layer_input *5' out || fail "$(cat out)"

# Adapters of all products, those of the per-layer inputs among them; a frozen table in 4 bits' place.
loss() { expect 0 "$SIFR" eval --data store --seq-length 40 --max-windows 2 --model "$1" && grep -o 'loss [0-9]\.[0-9]*' out; }
sed 's/"logging_steps": 1/&, "lora": {"r": 2, "lora_alpha": 4, "target_modules": "all-linear"}/' \
    ds0.json >dsadapt.json
train adapt adapted --ranks 2
for module in per_layer_model_projection layers.4.per_layer_input_gate layers.4.per_layer_projection; do
    grep -qa "model.$module.lora_A" adapted/adapter_model.safetensors || fail "$module has no adapter"
done
! grep -qa 'layers\.[234]\.self_attn\.[kv]_proj' adapted/adapter_model.safetensors || fail "keys of layers without any"
expect 0 "$SIFR" merge base adapted merged
loss merged >wanted
loss adapted >got
cmp wanted got || fail "$(cat wanted got)"

# --- beside a tower ---
rm -rf base text adapted
mv one plain
cp -r "$golden/gemma4-shared" base
train 0 one
grep -q 'its text model alone is read; [0-9]* other tensors' out err || fail "nothing is carried along"
train 3 2:tower --ranks 2 --recompute unit
same 2:tower
for layer in 2 3 4; do
    for name in k_proj v_proj k_norm; do
        grep -qa "model.language_model.layers.$layer.self_attn.$name.weight" one/model.safetensors ||
            fail "layer $layer: $name is not carried along"
    done
done
expect 0 "$SIFR" export one text --text-model
"$SIFR" inspect text | grep -o '^  [a-z_.0-9]*\.\(weight\|layer_scalar\)' >names
[ "$(grep -c '^  model\.\(embed_tokens_per_layer\|per_layer_model_projection\|per_layer_projection_norm\)\.weight' names)" = 3 ] ||
    fail "$(cat names)"
loss one >wanted
loss text >got
cmp wanted got || fail "the text model alone: $(cat wanted got)"
sed 's/, "target_modules": "all-linear"//' dsadapt.json >dsdefault.json
train default adapted
grep -qF '"target_modules": "model\\.language_model\\.layers\\.(?:\\d+\\.(?:self_attn\\.q_proj)|(?:0)\\.(?:self_attn\\.v_proj))"' \
    adapted/adapter_config.json || fail "$(cat adapted/adapter_config.json)"

# --- released sizes ---
echo '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}' >dsplan.json
plan() { "$SIFR" plan --config dsplan.json --model "$1" --world-size 8 --seq-length 512 >out 2>err || :; }
plan google/gemma-4-E2B-it
grep -q '^model *gemma4, 4,628,569,379 parameters' out || fail "$(cat out err)"
plan gemma-4-e4b
grep -q '^model *gemma4, 7,463,013,418 parameters' out || fail "$(cat out err)"

# --- refused ---
expect 2 "$SIFR" export plain refused.gguf --format gguf
grep -q '"num_kv_shared_layers" is 3: Gemma 4.s E2B and E4B are not supported with --format gguf' err ||
    fail "$(cat err)"
sed 's/"vocab_size_per_layer_input": 25/"vocab_size_per_layer_input": 22/' plain/config.json >words.json
expect 2 "$SIFR" init --config words.json --output made
grep -q '"vocab_size_per_layer_input" is 22, below "vocab_size" 23' err || fail "$(cat err)"
sed 's/"num_kv_shared_layers": 3/"num_kv_shared_layers": 4/' plain/config.json >shared.json
expect 2 "$SIFR" init --config shared.json --output made
grep -q 'none of the 1 layers before them is of type full_attention' err || fail "$(cat err)"
