# label: full
# What people tune with, on a GPU that a fake driver plays: TRL's steps of preferences, also with
# ranks and through their reference's file; a model that learns from another one; Adam in 8 bits.
# timeout: 600, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/expect.sh"
program=${SIFR_GPU_PROGRAM:-$BUILD/tests/sifr_on_fake_gpu}
. "$SOURCE/tests/support/mpirun.sh"
. "$SOURCE/tests/support/trl_steps.sh"
gpu() { "$program" "$@" --device cuda; }
bits() { sha256sum <"$1/model.safetensors"; }
figure() { sed -n "s|^.*\"$2\":\([^,}]*\).*$|\1|p" "$1/metrics.jsonl" | tail -n 1; }
near() { # RUN REFERENCE FIGURE
    awk -v a="$(figure "$1" "$3")" -v b="$(figure "$2" "$3")" \
        'BEGIN { exit !(a != "" && b != "" && a - b < 1e-4 && b - a < 1e-4) }' ||
        fail "$1: $3 is $(figure "$1" "$3"), not $(figure "$2" "$3")"
}

# --- preferences: TRL's five steps, in fp32 ---
pairs=(--config ds.json --model model --seq-length 48 --threads 1 --data pairs.jsonl
    --logging-steps 1)
for loss in sigmoid hinge ipo orpo; do
    expect 0 gpu train "${pairs[@]}" --per-device-train-batch-size 8 --preference $loss \
        --output $loss
    compare $loss $loss
done
expect 0 "$SIFR" score --model model --data pairs.jsonl --seq-length 48 --output scores.safetensors \
    --precision fp32 --threads 1
expect 0 gpu train "${pairs[@]}" --per-device-train-batch-size 8 --preference sigmoid \
    --reference scores.safetensors --output from-file
near from-file sigmoid loss # which of two equal rewards is larger, the CPU rounds otherwise
# Two ranks with half of the pairs each, at stages 1 and 3.
sed 's/"gradient_clipping"/"train_batch_size": 8, "zero_optimization": {"stage": 3}, &/' ds.json \
    >sharded.json
expect 0 gpu train "${pairs[@]}" --config sharded.json --per-device-train-batch-size 2 \
    --preference sigmoid --output one-rank
expect 0 "$launcher" -n 2 $options "$program" train "${pairs[@]}" --config sharded.json \
    --per-device-train-batch-size 2 --preference sigmoid --output two-ranks --device cuda
[ "$(bits one-rank)" = "$(bits two-ranks)" ] || fail "preferences on two ranks: other bits"

# --- distillation: the steps of the CPU ---
cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 400,
 "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": false,
 "pad_token_id": 0, "eos_token_id": 1}
J
mkdir tok
cp "$SOURCE/tests/golden/finetune/byte.json" tok/tokenizer.json
echo '{"eos_token": "</s>"}' >tok/tokenizer_config.json
expect 0 "$SIFR" init --config tiny.json --tokenizer tok --output student --seed 7
expect 0 "$SIFR" init --config tiny.json --tokenizer tok --output teacher --seed 8
awk 'BEGIN { for (i = 0; i < 8; i++) printf "{\"prompt\": \"Say %d\", \"completion\": \" %d\"}\n", i, i }' \
    >chats.jsonl
echo '{"optimizer": {"type": "AdamW", "params": {"lr": 3e-3}}, "gradient_clipping": 1.0,
       "sifr": {"max_steps": 4}}' >distil.json
for k in 5 400; do # a few words, and all of them
    expect 0 "$SIFR" score --model teacher --data chats.jsonl --seq-length 32 --top-k $k \
        --temperature 2 --output top-$k --precision fp32 --threads 1
    distil=(train --config distil.json --model student --data chats.jsonl --distill top-$k
        --seq-length 32 --per-device-train-batch-size 4 --logging-steps 1 --threads 1)
    expect 0 "$SIFR" "${distil[@]}" --output on-cpu-$k --device cpu
    expect 0 gpu "${distil[@]}" --output on-gpu-$k
    near on-gpu-$k on-cpu-$k loss
    near on-gpu-$k on-cpu-$k grad_norm
done
(near on-gpu-5 on-cpu-400 loss) 2>/dev/null && fail "the number of words changes nothing"

# --- Adam in 8 bits: the steps of the CPU, from one kind of device to the other ---
cat >eight.json <<'J'
{"train_batch_size": 4, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW8bit", "params": {"lr": 3e-3, "min_8bit_size": 1000}},
 "sifr": {"max_steps": 6, "save_steps": 3}}
J
eight=(train --config eight.json --model student --data chats.jsonl --seq-length 32 --threads 1
    --logging-steps 1)
expect 0 "$SIFR" "${eight[@]}" --output cpu-8 --device cpu
expect 0 gpu "${eight[@]}" --output gpu-8
near gpu-8 cpu-8 loss
near gpu-8 cpu-8 grad_norm
rm -rf moved
cp -r gpu-8 moved
rm -rf moved/checkpoint-6 moved/model.safetensors
echo checkpoint-3 >moved/latest
expect 0 gpu "${eight[@]}" --output moved --resume
[ "$(bits moved)" = "$(bits gpu-8)" ] || fail "8-bit Adam in two parts: other bits"
