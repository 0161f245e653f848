# The text model of a folder with a tower, exported alone: a folder of its plain decoder, and a GGUF
# file. Plain folders whose files llama.cpp's converter has made (tests/golden/gguf) stand in a
# config with a tower: of both the file must be the same.
. "$SOURCE/tests/support/expect.sh"

for name in gemma3 gemma4 gemma4_unified qwen3_vl qwen2_5_vl qwen3_5 smolvlm mistral3 lfm2_vl glm4v; do
    folder=$SOURCE/tests/golden/multimodal/models/$name
    [ -e "$folder" ] || folder=$SOURCE/tests/golden/gemma4/models/$name
    rm -rf base text
    cp -r "$folder" base
    printf '{"do_resize": true}' >base/preprocessor_config.json
    printf '{{ messages }}' >base/chat_template.jinja
    expect 0 "$SIFR" export base text --text-model
    [ -e text/chat_template.jinja ] && [ ! -e text/preprocessor_config.json ] || fail "$name: files"
    plain=$("$SIFR" inspect text | sed -n 's/^ *model_type *//p')
    case $name:$plain in
    gemma3:gemma3_text | gemma4:gemma4_text | gemma4_unified:gemma4_unified_text | qwen3_vl:qwen3 | \
        qwen2_5_vl:qwen2 | qwen3_5:qwen3_5_text | smolvlm:llama | mistral3:ministral3 | \
        glm4v:glm4 | lfm2_vl:lfm2) ;;
    *) fail "$name became $plain" ;;
    esac
    "$SIFR" inspect text | grep -o '^  [a-z_.0-9]*\.\(weight\|bias\|layer_scalar\)' >names
    ! grep -v '^  model\.layers\.\|^  model\.embed_tokens\.\|^  model\.\(embedding_\)\?norm\.\|^  lm_head\.' names ||
        fail "$name: other names"
    expect 0 "$SIFR" inspect base
    grep '^  \(vocab_size\|hidden_size\|tie_word\|norm_eps\|head_dim\|pad_token\|rope\)' out >before
    expect 0 "$SIFR" inspect text
    grep '^  \(vocab_size\|hidden_size\|tie_word\|norm_eps\|head_dim\|pad_token\|rope\)' out >after
    cmp before after || fail "$name: $(diff before after)"
done
expect 2 "$SIFR" export text again --text-model
grep -q -- '--text-model is for folders with a tower, and model_type glm4 has none' err || fail "$(cat err)"
expect 2 "$SIFR" export base again --text-model --format gguf
grep -q -- '--text-model is for --format hf' err || fail "$(cat err)"

wrap() { # PLAIN TYPE CLASS TEXT_TYPE
    local from=$SOURCE/tests/golden/gguf/$1 tied
    [ ! -d "$1" ] || from=$1
    rm -rf wrapped plain
    mkdir wrapped plain
    cp -r "$from" plain/model
    cp -r "$from" wrapped/model
    chmod -R u+w plain wrapped
    tied=$(grep -o '"tie_word_embeddings": *[a-z]*' "$from/config.json" | grep -o '[a-z]*$')
    {
        printf '{"model_type": "%s", "architectures": ["%s"], "tie_word_embeddings": %s,\n' \
            "$2" "$3" "${tied:-$5}"
        printf '"vision_config": {}, "text_config": '
        sed "s/\"model_type\": *\"[a-z0-9_]*\"/\"model_type\": \"$4\"/" "$from/config.json"
        printf '}'
    } >wrapped/model/config.json
    expect 0 "$SIFR" export plain/model plain.gguf --format gguf
    expect 0 "$SIFR" export wrapped/model wrapped.gguf --format gguf
    cmp plain.gguf wrapped.gguf || fail "$2: another file"
    rm plain.gguf wrapped.gguf
}
wrap qwen3 qwen3_vl Qwen3VLForConditionalGeneration qwen3_vl_text false
wrap gemma3 gemma3 Gemma3ForConditionalGeneration gemma3_text true
wrap gemma4 gemma4 Gemma4ForConditionalGeneration gemma4_text true
wrap ministral3 mistral3 Mistral3ForConditionalGeneration ministral3 false
wrap lfm2 lfm2_vl Lfm2VlForConditionalGeneration lfm2 true
# Sections of rotary positions, which text does not need, are llama.cpp's for images.
cp -r "$SOURCE/tests/golden/gguf/qwen3_5" sections
chmod -R u+w sections
sed -i 's/^ *10$/9/' sections/config.json
grep -q '^9$' sections/config.json || fail "$(cat sections/config.json)"
wrap sections qwen3_5 Qwen3_5ForConditionalGeneration qwen3_5_text false

# Ids that are never drawn, which Gemma 4 12B alone has.
cp -r "$SOURCE/tests/golden/gguf/gemma4" unified
chmod -R u+w unified
sed -i 's/"gemma4_text"/"gemma4_unified_text"/; s/Gemma4ForCausalLM/Gemma4UnifiedForCausalLM/' unified/config.json
printf '{"suppress_tokens": [270, 3]}' >unified/generation_config.json
expect 0 "$SIFR" export unified unified.gguf --format gguf
grep -qa 'tokenizer.ggml.suppress_tokens' unified.gguf || fail "no suppress_tokens"
printf '{"suppress_tokens": [270, -3]}' >unified/generation_config.json
expect 2 "$SIFR" export unified refused.gguf --format gguf
grep -q '"suppress_tokens" must hold ids of tokens' err || fail "$(cat err)"
