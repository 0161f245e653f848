# LAMB by the program, with groups of settings and an average of the weights: the same bytes on ranks,
# stages of a pipeline and after a resume; disks are refused, and `sifr plan` says so.
# label: full, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/expect.sh"

head -c 24000 "$SOURCE/docs/config.md" >text
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >log
cat >llama.json <<J
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
 "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": true}
J
"$SIFR" init --config llama.json --tokenizer tok --output llama --seed 3 >log
train() { # OUTPUT RANKS STAGE STEPS OPTION…
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "Lamb", "params": {"lr": 3e-3, "weight_decay": 0.1}},
 "zero_optimization": {"stage": $3},
 "sifr": {"seq_length": 32, "no_decay": "transformers", "layer_decay": 0.8, "ema": {"decay": 0.5}}}
J
    expect 0 "$SIFR" train --config ds.json --model llama --data text --output "$1" --ranks "$2" \
        --max-steps "$4" --threads 1 "${@:5}"
}
same() { # OUTPUT
    for file in model.safetensors ema/model.safetensors; do
        cmp one/$file "$1/$file" || fail "$1: $file differs"
    done
}

train one 1 0 3
train four 4 3 3
same four
for stage in 0 1; do
    train stages-$stage 4 $stage 3 --pipeline-stages 2
    same stages-$stage
done
train cut 4 1 2 --pipeline-stages 2
train cut 2 2 3 --resume
same cut

expect 2 "$SIFR" train --config ds.json --model llama --data text --output no --max-steps 1 \
    --offload-gradients nvme --nvme-path . --threads 1
grep -q 'LAMB with ema: parameters, gradients and states on other tiers are not supported yet' err ||
    fail "$(cat err)"
expect 0 "$SIFR" plan --config ds.json --model llama
grep -q 'offload_optimizer.device nvme *impossible' out || fail "$(cat out)"
