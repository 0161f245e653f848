#!/bin/sh
# Promise 2 of the design: the plan is the measurement. Anonymous memory of a training run, watched
# from outside, against what `sifr plan` said of it: both step orders, with and without
# recomputation, and within a limit, fp32 and bf16, optimizer state in bf16, with evaluations,
# Muon; and a model in 4 bits with adapters (QLoRA), Gemma 4's kind, LFM2's and a dense family of
# ops of its own, within 2 %.
# With SIFR_TEST_WHOLE (tests/soak/test_soak_whole.sh), in every combination, else in those in which
# each two values meet.
# label: full, timeout: 400, not under sanitizers
set -eu
fail() {
    echo "FAILED: $*" >&2
    exit 1
}

cat "$SOURCE"/docs/*.md "$SOURCE"/src/plan/*.c >text.txt
cat >config.json <<'END'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 1024,
 "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4,
 "intermediate_size": 704, "max_position_embeddings": 256, "eos_token_id": 0, "bos_token_id": 0}
END
"$SIFR" tokenizer train --vocab-size 1024 --data text.txt --output tokenizer >log
"$SIFR" init --config config.json --tokenizer tokenizer --output model >log

number() { # KEY FILE: the number of a member of a JSON object, of the object itself
    sed -n "s/^  \"$1\": \([0-9]*\).*/\1/p" "$2"
}

# What a model's plan and its run are measured by: 5 %, or 16 MiB where that is more.
slack_of() { # PLANNED
    slack=$(($1 / 20))
    [ $slack -gt $((16 << 20)) ] || slack=$((16 << 20))
    [ -z "${percent:-}" ] || slack=$(($1 * percent / 100))
}

# Largest anonymous memory of a process, in bytes, looked at 50 times a second while it lives.
watch() {
    largest=0
    while kill -0 "$1" 2>/dev/null; do
        now=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status" 2>/dev/null || true)
        [ "${now:-0}" -gt "$largest" ] && largest=$now
        sleep 0.02
    done
    echo $((largest * 1024))
}

compare() { # PRECISION STEP_ORDER RECOMPUTE [ACTIVATION_MEMORY [KEYS OF bf16 [KEYS OF sifr]]]
    echo "{\"bf16\": {${5:-}}, ${optimizer:-} \"sifr\": {\"step_order\": \"$2\", \"recompute\": \"$3\"${4:+,
        \"activation_memory\": \"$4\"}${6:+, $6}}}" >ds.json
    echo "$*" >case
    set -- --config ds.json --model "${model:-model}" --seq-length "${length:-256}" --per-device-train-batch-size "${batch:-4}" \
        --gradient-accumulation-steps 2 --threads 2 $1
    "$SIFR" plan "$@" --json >plan.json
    rm -rf out
    "$SIFR" train "$@" --data text.txt ${evaluate:-} --output out --max-steps 2 --json >train.json 2>log &
    measured=$(watch $!)
    wait $! || fail "$*: train: $(cat log)"
    planned=$(number peak_bytes plan.json)
    baseline=$(number baseline_bytes plan.json)
    said=$(number measured_bytes train.json)
    [ "$planned" -gt 70000000 ] || fail "the model is too small to compare anything: $planned"
    [ "$(number planned_bytes train.json)" -eq "$planned" ] || fail "plan and run plan otherwise"
    slack_of "$planned"
    # the run's own figure leaves the program's baseline out
    for value in $((measured - baseline)) "$said"; do
        difference=$((value - planned))
        [ ${difference#-} -le $slack ] ||
            fail "$(cat case): planned $planned, program $baseline, measured $value"
    done
    echo "$(cat case): planned $planned + $baseline, measured $measured, by itself $said"
}

whole=${SIFR_TEST_WHOLE:-}
for precision in "" --bf16; do
    for order in batch unit; do
        for recompute in none unit; do
            case "$whole$precision-$order-$recompute" in
            -batch-unit | -unit-none | --bf16-batch-none | --bf16-unit-unit) continue ;;
            esac
            compare "$precision" $order $recompute
        done
    done
done
compare "" batch auto 30MiB
limited=$(number planned_bytes train.json)
compare "" unit none "" "" '"offload_activations": "nvme", "nvme_path": "."'
[ "$(number planned_bytes train.json)" -lt "$limited" ] || fail "activations on disk take no less"

batch=8 # two tiles
compare "" batch unit
untiled=$(number planned_bytes train.json)
compare "" batch unit "" "" '"tile_tokens": 1024'
batch=4
[ "$(number planned_bytes train.json)" -lt "$untiled" ] || fail "tiles take no less"

# Evaluations need nothing of their own, though their logits are more than all else.
sed 's/"vocab_size": 1024/"vocab_size": 32768/' config.json >wide.json
"$SIFR" init --config wide.json --tokenizer tokenizer --output wide >log
model=wide evaluate="--eval-data text.txt --eval-steps 1 --max-eval-windows 8"
compare --bf16 batch unit
model=model evaluate=

moments='"bf16_optimizer_states": true' masters='"bf16_master_weights_and_grads": true'
compare --bf16 batch none "" "$moments"
full=$(number planned_bytes train.json)
compare --bf16 batch none "" "$moments, $masters"
# 4 bytes of master weights less, and 2 of gradients, but for a unit's that is made in fp32
parameters=$(number parameters plan.json)
less=$((full - $(number planned_bytes train.json)))
[ $less -gt $((5 * parameters)) ] || fail "no master weights: $less bytes less, of $parameters parameters"

# A state less for matrices, and room for whole ones while they are updated.
optimizer='"optimizer": {"type": "Muon"},'
compare "" batch none
compare --bf16 unit unit
optimizer=

# 197 million parameters, most of them in 4 bits, and adapters beside them: 2 % are no more than what
# the program takes outside its plan, such as oneDNN's products and the room to cut text into tokens.
sed 's/"hidden_size": 256/"hidden_size": 1024/; s/"num_hidden_layers": 6/"num_hidden_layers": 15/
    s/"num_attention_heads": 8, "num_key_value_heads": 4/"num_attention_heads": 16, "num_key_value_heads": 8/
    s/"intermediate_size": 704/"intermediate_size": 3072/; s/"vocab_size": 1024/"vocab_size": 4096/' \
    config.json >large.json
"$SIFR" init --config large.json --tokenizer tokenizer --output large >log
nf4='"load_in_4bit": true, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true'
qlora="\"lora\": {\"r\": 16, \"lora_alpha\": 32, \"target_modules\": \"all-linear\"},
       \"quantization\": {$nf4}"
model=large batch=2 length=64 percent=2
for recompute in ${whole:+none} unit; do compare --bf16 batch $recompute "" "" "$qlora"; done

# Gemma 4: two kinds of heads, numbers that nothing trains.
cat >gemma4.json <<'END'
{"model_type": "gemma4_unified_text", "architectures": ["Gemma4UnifiedForCausalLM"],
 "vocab_size": 1024, "hidden_size": 512, "num_hidden_layers": 12, "num_attention_heads": 8,
 "num_key_value_heads": 4, "head_dim": 64, "global_head_dim": 128, "num_global_key_value_heads": 1,
 "attention_k_eq_v": true, "sliding_window": 48, "intermediate_size": 2048,
 "max_position_embeddings": 256, "eos_token_id": 0, "bos_token_id": 0, "pad_token_id": 0}
END
"$SIFR" init --config gemma4.json --tokenizer tokenizer --output gemma4 >log
model=gemma4
compare "" batch none
[ -z "$whole" ] || compare --bf16 unit unit

# LFM2: short convolutions, which keep what is before their gate.
cat >lfm2.json <<'END'
{"model_type": "lfm2", "architectures": ["Lfm2ForCausalLM"], "vocab_size": 1024,
 "hidden_size": 512, "num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 4,
 "layer_types": ["conv", "conv", "full_attention", "conv", "conv", "full_attention", "conv", "conv",
 "full_attention", "conv", "conv", "full_attention"], "intermediate_size": 2048,
 "block_auto_adjust_ff_dim": false, "max_position_embeddings": 256, "eos_token_id": 0,
 "bos_token_id": 0, "pad_token_id": 0}
END
"$SIFR" init --config lfm2.json --tokenizer tokenizer --output lfm2 >log
model=lfm2
compare "" batch none
[ -z "$whole" ] || compare --bf16 unit unit

# Cohere: two branches of one norm, and logits with a scale.
cat >cohere.json <<'END'
{"model_type": "cohere", "architectures": ["CohereForCausalLM"], "vocab_size": 1024,
 "hidden_size": 512, "num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 4,
 "intermediate_size": 2048, "max_position_embeddings": 256, "eos_token_id": 0, "bos_token_id": 0,
 "use_qk_norm": true}
END
"$SIFR" init --config cohere.json --tokenizer tokenizer --output cohere >log
model=cohere
compare --bf16 batch none
[ -z "$whole" ] || compare "" unit unit

# Qwen 3.5: the gated delta rule, whose backward pass makes its states again in scratch.
cat >qwen3_5.json <<'END'
{"model_type": "qwen3_5_text", "architectures": ["Qwen3_5ForCausalLM"], "vocab_size": 1024,
 "hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 4,
 "head_dim": 64, "linear_num_key_heads": 4, "linear_num_value_heads": 8,
 "linear_key_head_dim": 64, "linear_value_head_dim": 64, "intermediate_size": 2048,
 "max_position_embeddings": 256, "eos_token_id": 0, "bos_token_id": 0}
END
"$SIFR" init --config qwen3_5.json --tokenizer tokenizer --output qwen3_5 >log
model=qwen3_5
compare "" batch none
[ -z "$whole" ] || compare --bf16 unit unit
