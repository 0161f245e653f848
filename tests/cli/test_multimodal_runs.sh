# Folders with a tower through the program: the text model trains on text, to the same bits on 2 ranks
# at ZeRO 3 with recomputation; every other tensor comes out as it came in; config.json and what lies
# beside the weights byte for byte; a run goes on from its checkpoint, which holds none of what is
# carried along, and an export is what the run wrote. The tiny folders are those of
# tests/golden/make_multimodal.py and make_gemma4.py.
# label: full; timeout: 120, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/ranks.sh"
trap 'kill $(jobs -p) 2>/dev/null || :; wait || :' EXIT

STORE_WORDS=23
. "$SOURCE/tests/support/small_store.sh"
for stage in 0 3; do
    cat >ds$stage.json <<J
{"train_batch_size": 2, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.1}},
 "zero_optimization": {"stage": $stage},
 "sifr": {"seq_length": 40, "max_steps": 2, "logging_steps": 1}}
J
done
train() { # CONFIG OUTPUT OPTION...
    expect 0 "$SIFR" train --config ds$1.json --data store --model base --threads 1 --output "${@:2}"
}
# An adapter is of the text model alone, and PEFT finds its modules by whole names.
adapt() { # OUTPUT SETTINGS OPTION...
    sed 's/"logging_steps": 1/&, "lora": {"r": 2, "lora_alpha": 4, '"$2"'}/' ds0.json >adapt.json
    expect "${code:-0}" "$SIFR" train --config adapt.json --data store --model base --threads 1 \
        --output "$1" "${@:3}"
}
loss() { expect 0 "$SIFR" eval --data store --seq-length 40 --max-windows 2 --model "$@" && grep -o 'loss [0-9]\.[0-9]*' out; }
# tensors FILE: name, type, shape and hash of each tensor
tensors() {
    local size header name from to
    size=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    header=$(tail -c +9 "$1" | head -c "$size" | sed 's/"__metadata__":{[^}]*},*//')
    tail -c +$((9 + size)) "$1" >values
    grep -o '"[^"{}]*": *{[^}]*}' <<<"$header" | while read -r line; do
        name=$(cut -d'"' -f2 <<<"$line")
        read -r from to < <(sed 's/.*"data_offsets": *\[\([0-9]*\), *\([0-9]*\)\].*/\1 \2/' <<<"$line")
        echo "$name $(grep -o '"dtype": *"[^"]*"\|"shape": *\[[^]]*\]' <<<"$line" | tr -d ' \n')" \
            "$(tail -c +$((from + 1)) values | head -c $((to - from)) | sha256sum | head -c 16)"
    done | sort
}
# Weights that are trained: Gemma 4's layer_scalar is a buffer.
is_text() { grep -E '^(model\.)?(language_model|text_model|layers|norm|embed_tokens)\.|^lm_head\.' | grep -v 'layer_scalar '; }

count=0
golden=$SOURCE/tests/golden
for folder in "$golden"/multimodal/models/* "$golden"/gemma4/models/gemma4{,_unified}; do
    name=$(basename "$folder")
    rm -rf base run other exported
    cp -r "$folder" base
    printf '{"do_resize": true}' >base/preprocessor_config.json
    printf '{{ messages }}' >base/chat_template.jinja
    train 0 run --save-steps 2
    grep -q "its text model alone is read; [0-9]* other tensors" out err || fail "$name: not said"
    train 3 other --ranks 2 --recompute unit
    cmp run/model.safetensors other/model.safetensors || fail "$name: ZeRO 3 has other bits"
    for file in config.json generation_config.json preprocessor_config.json chat_template.jinja; do
        cmp base/$file run/$file || fail "$name: another $file"
    done
    expect 0 "$SIFR" export run/checkpoint-2 exported
    cmp run/model.safetensors exported/model.safetensors || fail "$name: export"
    expect 0 "$SIFR" eval --model run --data store --seq-length 40 --max-windows 2

    tensors base/model.safetensors >before
    tensors run/model.safetensors >after
    cmp <(cut -d' ' -f1,2 before) <(cut -d' ' -f1,2 after) || fail "$name: other tensors"
    is_text <before >text || fail "$name: no text"
    comm -12 before after >same
    cmp same <(comm -23 before text) || fail "$name: not the text alone was trained"
    count=$((count + 1))
done
[ $count -ge 11 ] || fail "only $count folders"

# --- of one of them, the rest ---
rm -rf base run other exported
cp -r "$SOURCE/tests/golden/multimodal/models/qwen3_vl" base
tower=model.visual.patch_embed.proj.weight
train 0 whole --max-steps 4 --save-steps 2
grep -q "\"name\": \"$tower\"" whole/checkpoint-2/manifest.json || fail "the manifest names no $tower"
train 0 run --max-steps 2
expect 0 "$SIFR" train --config ds0.json --data store --model base --threads 1 --output run \
    --max-steps 4 --resume
cmp whole/model.safetensors run/model.safetensors || fail "a resumed run has other bits"

tensors base/model.safetensors >before-lora

# tiles
sed 's/"train_batch_size": 2/"train_batch_size": 1/' ds0.json >dslong.json
train long plain --bf16 --seq-length 2048 --max-steps 1
train long tiles --bf16 --seq-length 2048 --max-steps 1 --tile-tokens 1024
cmp plain/model.safetensors tiles/model.safetensors || fail "tiles have other bits"

# One byte of the tower is another: the run does not go on, and nothing is exported.
place=$(tail -c +9 base/model.safetensors | head -c 100000 | grep -ao "\"$tower\":{[^}]*}" |
    grep -o '[0-9]*,[0-9]*\]}' | cut -d, -f1)
begin=$((8 + $(od -An -tu8 -N8 base/model.safetensors | tr -d ' ') + place))
cp -r base good
printf 'x' | dd of=base/model.safetensors bs=1 seek=$begin conv=notrunc status=none
expect 2 "$SIFR" train --config ds0.json --data store --model base --threads 1 --output run \
    --max-steps 6 --resume
grep -q "tensor $tower of $PWD/base, which is carried along, was another" err || fail "$(cat err)"
expect 1 "$SIFR" export whole/checkpoint-2 exported
grep -q "tensor $tower, which is carried along, is another in $PWD/base" err || fail "$(cat err)"
mv base changed
expect 1 "$SIFR" export whole/checkpoint-2 exported
grep -q "what its text model carries along is in $PWD/base, which is not there" err || fail "$(cat err)"
[ ! -e exported ] || fail "an export without its base"
mv good base

# --- adapters ---
rm -rf adapted merged
adapt adapted '"target_modules": ["q_proj", "down_proj"], "modules_to_save": ["norm"]' --save-steps 2
grep -qF '"target_modules": "model\\.language_model\\.layers\\.(?:\\d+\\.(?:self_attn\\.q_proj|mlp\\.down_proj))"' \
    adapted/adapter_config.json || fail "$(cat adapted/adapter_config.json)"
grep -q '"model.language_model.norm"' adapted/adapter_config.json || fail "modules_to_save: $(cat adapted/adapter_config.json)"
expect 0 "$SIFR" export adapted/checkpoint-2 exported-adapter
cmp adapted/adapter_model.safetensors exported-adapter/adapter_model.safetensors || fail "export of an adapter"
expect 0 "$SIFR" merge base adapted merged
tensors merged/model.safetensors >after
comm -12 before-lora after | is_text | grep -q q_proj && fail "nothing was merged"
cmp <(grep "^model.visual" before-lora) <(grep "^model.visual" after) || fail "the merge changed the tower"
loss merged >wanted
loss adapted >got
cmp wanted got || fail "$(cat wanted got)"
# Names as older versions of transformers have them, and of a tower: of the same length.
cp -r adapted older
sed -i 's/model\.language_model\./language_model.model./g' older/adapter_model.safetensors
sed -i 's/model\\\\\.language_model\\\\\./language_model\\\\.model\\\\./; s/"model\.language_model\.norm"/"language_model.model.norm"/' \
    older/adapter_config.json
grep -q '"language_model' older/adapter_config.json || fail "$(cat older/adapter_config.json)"
rm -rf merged-older
expect 0 "$SIFR" merge base older merged-older
cmp merged/model.safetensors merged-older/model.safetensors || fail "older names give another model"
cp -r adapted tower
sed -i 's/model\.language_model\.layers\.0\.mlp/model.visual_tower_x.layers.0.mlp/g' tower/adapter_model.safetensors
expect 1 "$SIFR" merge base tower merged-tower
grep -q 'language_model.layers.0.mlp.down_proj.lora_A.weight: missing' err || fail "$(cat err)"
sed -i 's/|mlp[^)]*//' tower/adapter_config.json
expect 1 "$SIFR" merge base tower merged-tower
grep -q 'visual_tower_x.layers.0.mlp.down_proj.lora_A.weight: it is of the tower' err || fail "$(cat err)"
code=2 adapt refused '"target_modules": ["q_proj"], "bias": "all"'
grep -q 'bias "all" would also name the biases of the tower' err || fail "$(cat err)"

# A head that is stored with other values is not tied, whatever the config says: its folder and the
# run's checkpoints open as they are.
rm -rf untied run exported
cp -r base keep
rm -rf base
cp -r "$SOURCE/tests/golden/multimodal/models/mistral3-mistral" base
loss base >wanted
sed -i '/"tie_word_embeddings": false/d' base/config.json
loss base >got
cmp wanted got || fail "a head of its own: $(cat wanted got)"
train 0 run --save-steps 2
expect 0 "$SIFR" export run/checkpoint-2 exported
cmp run/model.safetensors exported/model.safetensors || fail "export of a head of its own"
rm -rf base
mv keep base

# What is no text is refused by name.
sed -i 's/"image_token_id": [0-9]*/"image_token_id": 7/' base/config.json
expect 1 "$SIFR" train --config ds0.json --data store --model base --threads 1 --output refused
grep -q "is id 7, which is image_token_id of config.json" err || fail "$(cat err)"
expect 2 "$SIFR" init --config base/config.json --output made
grep -q 'has a tower, whose weights are not made here' err || fail "$(cat err)"
expect 2 "$SIFR" export whole/checkpoint-2 universal --format deepspeed-universal
grep -q 'has a tower, and a universal checkpoint' err || fail "$(cat err)"
