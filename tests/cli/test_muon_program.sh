# Muon by the program, with Adam at another rate and groups of settings: the same bytes on 1, 2 and 4
# ranks at every stage, in stages of a pipeline and after a resume; memory as planned; disks and an
# average of the weights are refused, and `sifr plan` says so.
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
 "optimizer": {"type": "Muon", "params": {"lr": 1e-2, "weight_decay": 0.1, "adam_lr": 3e-3}},
 "zero_optimization": {"stage": $3},
 "sifr": {"seq_length": 32, "no_decay": "transformers", "layer_decay": 0.8}}
J
    expect 0 "$SIFR" train --config ds.json --model llama --data text --output "$1" --ranks "$2" \
        --max-steps "$4" --threads 1 "${@:5}"
}
same() { # OUTPUT
    cmp one/model.safetensors "$1/model.safetensors" || fail "$1 differs"
}

train one 1 0 3
for ranks in 2 4; do
    for stage in 0 1 2 3; do
        train "r$ranks-$stage" "$ranks" "$stage" 3
        same "r$ranks-$stage"
    done
done
for stage in 0 1; do
    train stages-$stage 4 $stage 3 --pipeline-stages 2
    same stages-$stage
done
train cut 4 3 1
train cut 2 2 2 --resume
train cut 1 0 3 --resume
same cut

expect 2 "$SIFR" train --config ds.json --model llama --data text --output no --max-steps 1 \
    --offload-gradients nvme --nvme-path . --threads 1
grep -q 'Muon: parameters, gradients and states on other tiers are not supported yet' err ||
    fail "$(cat err)"
expect 0 "$SIFR" plan --config ds.json --model llama
grep -q 'offload_optimizer.device nvme *impossible' out || fail "$(cat out)"
expect 2 "$SIFR" train --config ds.json --model llama --data text --output no --max-steps 1 \
    --ema-decay 0.5 --threads 1
grep -q 'an average of the weights is not supported yet with Muon' err || fail "$(cat err)"
