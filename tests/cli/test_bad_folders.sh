# Model folders that are wrong, as a table: config keys of another type or length, types of layers,
# windows, a tower without its text part, scales of 8 bits of another shape, a base that changed under
# a resumed run. Each is refused in one line that names the file, or the tensor, and the key.
# label: short; timeout: 120, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/expect.sh"
STORE_WORDS=23
. "$SOURCE/tests/support/small_store.sh"
golden=$SOURCE/tests/golden
echo '{"train_micro_batch_size_per_gpu": 1, "sifr": {"seq_length": 16, "max_steps": 1}}' >ds.json

tries=0
# refused WHAT TEXT...: what the last command said in `err` is one line with each TEXT
refused() {
    local text
    [ "$(grep -c . err)" = 1 ] || fail "$1: not one line: $(cat err)"
    for text in "${@:2}"; do grep -qF -- "$text" err || fail "$1: no '$text' in: $(cat err)"; done
    tries=$((tries + 1))
}
take() { # FOLDER: a copy of it in base/
    rm -rf base
    cp -r "$golden/$1" base
    chmod -R u+w base
}

# FOLDER | KEY | the value that it gets, in a config.json of one line a key | in place of "KEY"
while IFS='|' read -r folder key value more; do
    case $folder in '' | '#'*) continue ;; esac
    folder=${folder%% *} key=$(echo $key) value=$(echo $value) more=$(echo $more)
    take "$folder"
    # the key with all of its value: a list or an object ends where its brackets are closed
    awk -v key="\"$key\":" -v value="$value" '
        function depth(text) { return gsub(/[[{]/, "", text) - gsub(/[]}]/, "", text) }
        skip { open += depth($0); if (open <= 0) { skip = 0; print own value (/,$/ ? "," : "") } next }
        index($0, key) && !done {
            done = 1
            own = substr($0, 1, index($0, key) + length(key))
            open = depth($0)
            if (open > 0) { skip = 1; next }
            print own value (/,$/ ? "," : "")
            next
        }
        { print }
        END { exit !done }' base/config.json >changed || fail "$folder has no $key"
    mv changed base/config.json
    expect 2 "$SIFR" plan --config ds.json --model base
    refused "$folder: $key: $value" base/config.json "${more:-\"$key\"}"
done <<'T'
# types
families/models/lfm2          | vocab_size           | "23"
families/models/lfm2          | hidden_size          | 24.5
families/models/lfm2          | conv_bias            | 1
families/models/lfm2          | conv_L_cache         | 1
families/models/lfm2          | conv_L_cache         | 4000
families/models/lfm2          | norm_eps             | "small"
families/models/lfm2          | rope_parameters      | []
families/models/lfm2          | block_multiple_of    | 0
dense/models/exaone4          | num_key_value_heads  | 3
dense/models/stablelm         | partial_rotary_factor | 0.3
dense/models/stablelm         | use_qkv_bias         | "yes"
dense/models/hunyuan_v1_dense | alpha                | []
dense/models/olmo             | clip_qkv             | -1
dense/models/cohere2          | logit_scale          | [0.3]
dense/models/apertus          | hidden_act           | "tanh"
dense/models/apertus          | attention_bias       | 1
dense/models/stablelm-norms   | qk_layernorm         | 2
dense/models/opt              | ffn_dim              | 0
dense/models/opt              | word_embed_proj_dim  | [12]
dense/models/opt              | do_layer_norm_before | "no"
dense/models/opt              | layerdrop            | 0.5
dense/models/falcon-grouped   | num_kv_heads         | 4
dense/models/falcon-grouped   | num_ln_in_parallel_attn | 0
dense/models/bloom            | n_head               | 0
dense/models/falcon           | alibi                | true
dense/models/falcon           | ffn_hidden_size      | 1.5
gemma4/models/gemma4_text     | attention_k_eq_v     | "true"
gemma4/models/gemma4_text     | head_dim             | 7
gemma4/models/gemma4_text     | final_logit_softcapping | "x"
# lengths, types of layers, windows
families/models/lfm2          | layer_types          | ["conv"]
families/models/lfm2          | layer_types          | ["conv", "full_attention", "convolution"]
families/models/lfm2          | layer_types          | ["conv", "full_attention", 3]
families/models/lfm2          | layer_types          | "conv"
dense/models/exaone4          | layer_types          | ["full_attention"]
dense/models/exaone4          | layer_types          | ["full_attention", "chunked_attention"]
dense/models/exaone4          | sliding_window       | 0
dense/models/exaone4          | sliding_window       | null
dense/models/cohere2          | sliding_window       | -7
dense/models/vaultgemma       | sliding_window       | "all"
gemma4/models/gemma4_text     | layer_types          | []
gemma4/models/gemma4_text     | sliding_window       | 0
gemma4/models/gemma4_text     | per_layer_config     | {"7": {"head_dim": 10}}
gemma4/models/gemma4_text     | per_layer_config     | {"1": {"head_dim": "10"}}
gemma4/models/gemma4_text     | per_layer_config     | [10]
gemma4/models/gemma4_text     | full_attention       | {"rope_type": "default"}
# folders with a tower
multimodal/models/lfm2_vl     | text_config          | null
multimodal/models/qwen3_vl    | text_config          | []
multimodal/models/gemma3      | text_config          | "gemma3_text"
gemma4/models/gemma4          | layer_types          | ["full_attention"]
multimodal/models/lfm2_vl     | layer_types          | ["conv", "mamba"]
# 8 bits
fp8/blocks                    | weight_block_size    | [16] | quantization_config.weight_block_size
fp8/blocks                    | weight_block_size    | [16, 0] | quantization_config.weight_block_size
fp8/blocks                    | weight_block_size    | 16 | quantization_config.weight_block_size
fp8/blocks                    | quant_method         | "gptq" | quantization_config
T
[ $tries -ge 40 ] || fail "only $tries configs"

# header FROM TO: a name or a shape in the header of base/model.safetensors, of the same length
header() {
    [ ${#1} = ${#2} ] && grep -qaF -- "$1" base/model.safetensors || fail "no $1"
    LC_ALL=C sed -i "s/$(printf %s "$1" | sed 's/[][\.]/\\&/g')/$2/" base/model.safetensors
}
train() { "$SIFR" train --config ds.json --model base --data store --threads 1 --output "$@"; }

# A tower whose text part is not in the files.
take multimodal/models/qwen3_vl
header '"model.language_model.norm.weight' '"model.vision_models..norm.weight'
expect 1 train out1
refused "no text part" base: model.language_model.norm.weight

# Scales of another shape, and of none.
take fp8/blocks
header '"model.layers.0.mlp.down_proj.weight_scale_inv":{"dtype":"F32","shape":[2,3]' \
    '"model.layers.0.mlp.down_proj.weight_scale_inv":{"dtype":"F32","shape":[3,2]'
expect 1 train out2
refused "other scales" base: model.layers.0.mlp.down_proj.weight_scale_inv \
    quantization_config
take fp8/blocks
header 'model.layers.0.mlp.down_proj.weight_scale_inv' 'model.layers.0.mlp.down_proj.weight_scale_inw'
expect 1 train out3
refused "no scales" base: model.layers.0.mlp.down_proj

# Another number than the class has where nothing is trained: beta is 1.0 here, not 0.5.
take dense/models/apertus
LC_ALL=C sed -i 's/\x00\x00\x00\x3f/\x00\x00\x80\x3f/' base/model.safetensors
expect 1 train out4
refused "another beta" base: model.layers.0.mlp.act_fn.beta "it is 1, but only 0.5"

# A base that changed: of a tower, and of a number that nothing trains.
for case in multimodal/models/lfm2_vl:vision_tower gemma4/models/gemma4_text:layer_scalar \
    dense/models/apertus:act_fn.eps; do
    folder=${case%:*} what=${case#*:}
    take "$folder"
    rm -rf run
    expect 0 train run --save-steps 1 --max-steps 1
    from=$(head -c 200000 base/model.safetensors | grep -ao "\"[a-z_0-9.]*$what[^}]*}" | head -n 1 |
        sed 's/.*"data_offsets": *\[\([0-9]*\),.*/\1/')
    size=$(od -An -tu8 -N8 base/model.safetensors | tr -d ' ')
    printf 'AB' | dd of=base/model.safetensors bs=1 seek=$((8 + size + from)) conv=notrunc 2>/dev/null
    expect 2 train run --max-steps 2 --resume
    sed -i '/^data: /d' err
    refused "$what changed" base "$what"
done
echo "$tries folders refused"
