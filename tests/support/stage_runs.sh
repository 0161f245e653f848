# Sourced by tests of pipeline stages: seven small models of 8 or 10 units, a store, and runs of 4 steps of
# 8 sequences, compared with one rank to the last bit. What runs is in $case.
. "$SOURCE/tests/support/ranks.sh"
head -c 24000 "$SOURCE/docs/config.md" >text
head -c 2000 text >held
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >log 2>&1
"$SIFR" tokenize --tokenizer tok --data text --output store >log 2>&1
config() { # NAME JSON
    echo "$2" >$1.json
    "$SIFR" init --config $1.json --tokenizer tok --output $1 --seed 3 >log
}
sizes='"vocab_size": 300, "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 6,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64'
llama='"model_type": "llama", "architectures": ["LlamaForCausalLM"], '$sizes
config untied "{$llama, \"tie_word_embeddings\": false}"
config tied "{$llama, \"tie_word_embeddings\": true}"
config gpt2 '{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 300,
    "n_embd": 48, "n_layer": 6, "n_head": 4, "n_positions": 64}' # tied, with dropout
config gemma4 "{\"model_type\": \"gemma4_text\", \"architectures\": [\"Gemma4ForCausalLM\"], $sizes,
    \"hidden_size_per_layer_input\": 0, \"head_dim\": 10, \"global_head_dim\": 14,
    \"num_global_key_value_heads\": 1, \"attention_k_eq_v\": true, \"sliding_window\": 9,
    \"final_logit_softcapping\": 5.0}"
config gemma4_shared "{\"model_type\": \"gemma4_text\", \"architectures\": [\"Gemma4ForCausalLM\"],
    $sizes, \"hidden_size_per_layer_input\": 6, \"vocab_size_per_layer_input\": 300,
    \"head_dim\": 10, \"global_head_dim\": 14, \"sliding_window\": 9, \"num_kv_shared_layers\": 3,
    \"use_double_wide_mlp\": true, \"layer_types\": [\"full_attention\", \"sliding_attention\",
    \"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\"]}"
config lfm2 "{\"model_type\": \"lfm2\", \"architectures\": [\"Lfm2ForCausalLM\"], $sizes,
    \"layer_types\": [\"conv\", \"conv\", \"full_attention\", \"conv\",
    \"full_attention\", \"conv\"], \"block_multiple_of\": 4,
    \"conv_bias\": true}"
config qwen3_5 "{\"model_type\": \"qwen3_5_text\", \"architectures\": [\"Qwen3_5ForCausalLM\"], $sizes,
    \"head_dim\": 16, \"full_attention_interval\": 3, \"linear_num_key_heads\": 2,
    \"linear_num_value_heads\": 4, \"linear_key_head_dim\": 8, \"linear_value_head_dim\": 12}"

# settings PRECISION STAGES SCHEDULE ZERO [MORE OF THE PIPELINE [MORE OF SIFR]]: ds.json
settings() {
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.01}},
 "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 1e-3, "warmup_num_steps": 4}},
 "bf16": {"enabled": $([ $1 = bf16 ] && echo true || echo false)},
 "fp16": {"enabled": $([ $1 = fp16 ] && echo true || echo false), "initial_scale_power": 24, "hysteresis": 1},
 "zero_optimization": {"stage": $4},
 "pipeline": {"stages": $2, "schedule": "$3"${5:+, $5}},
 "sifr": {"seq_length": 32, "max_steps": 4, "logging_steps": 1, "max_eval_windows": 4${6:+, $6}}}
J
}
train() { # MODEL OUTPUT RANKS OPTION...
    "$SIFR" train --config ds.json --model $1 --data store --eval-data held --threads 1 \
        --output "$2" --ranks "$3" "${@:4}" >out 2>err || fail "$case: exit code $?"
}
one_rank() { # MODEL PRECISION: one-MODEL-PRECISION
    case="one rank, $1 $2"
    settings $2 1 1f1b 0
    [ -e one-$1-$2 ] || train $1 one-$1-$2 1
}
# like_one MODEL PRECISION STAGES DATA_RANKS SCHEDULE ZERO [MORE [MORE]]
like_one() {
    one_rank $1 $2
    case="$1 $2, $3 stages x $4 ranks, $5, ZeRO $6${7:+, $7}${8:+, $8}"
    settings $2 $3 $5 $6 "${7:-}" "${8:-}"
    rm -rf run
    train $1 run $(($3 * $4))
    same run one-$1-$2
}
# A run that ended at step 2, in first/, and other meshes that go on with it to the bits of one rank:
# first_steps MODEL PRECISION RANKS STAGES ZERO [MORE OF SIFR]
first_steps() {
    one_rank $1 $2
    case="$1 $2, the first steps"
    settings $2 $4 1f1b $5 "" "\"save_steps\": 2${6:+, $6}"
    train $1 first $3
    rm -r first/checkpoint-4 first/model.safetensors
    printf checkpoint-2 >first/latest
}
# goes_on MODEL PRECISION RANKS STAGES ZERO [MORE OF SIFR]
goes_on() {
    case="resumed on $3 ranks in $4 stages, ZeRO $5${6:+, $6}"
    rm -rf run
    cp -r first run
    settings $2 $4 1f1b $5 "" "\"save_steps\": 2${6:+, $6}"
    train $1 run $3 --resume
    grep -q 'resumed from checkpoint-2' out || fail "$case: not resumed"
    [ "$(bits run)" = "$(bits one-$1-$2)" ] || fail "$case: other weights"
}
