# label: full
# Copies of the state and pipeline stages on GPUs that fake drivers play, as a user runs them: the
# weights of one rank at every ZeRO stage and schedule, with evaluation, through host memory where
# ranks do not reach each other's GPU, and from a checkpoint of another mesh.
# not under sanitizers (MPI keeps what it took), timeout: 600
. "$SOURCE/tests/support/expect.sh"
program=${SIFR_GPU_PROGRAM:-$BUILD/tests/sifr_on_fake_gpu}
. "$SOURCE/tests/support/mpirun.sh"

awk 'BEGIN { for (i = 0; i < 200; i++) print "good bad food was were day the a very red big one two" }' >text
head -n 20 text >held
"$SIFR" tokenizer train --vocab-size 270 --data text --output tok >/dev/null 2>&1
cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 270,
 "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
 "num_key_value_heads": 1, "max_position_embeddings": 64, "tie_word_embeddings": true}
J
"$SIFR" init --config tiny.json --tokenizer tok --output model --seed 3 >/dev/null
config() { # ZERO [MORE KEYS]
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
 "gradient_clipping": 1.0, "zero_optimization": {"stage": $1}${2:+, $2},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}}, "sifr": {"step_order": "batch"}}
J
}
train() { # RANKS OUTPUT OPTION…
    local ranks=$1 output=$2
    shift 2
    expect 0 "$launcher" -n "$ranks" $options "$program" train --config ds.json --model model \
        --data text --eval-data held --eval-steps 3 --max-eval-windows 4 --seq-length 16 \
        --max-steps 3 --threads 1 --device cuda --output "$output" "$@"
}
losses() { cut -d, -f1-5 "$1/metrics.csv"; }
like_one() { # NAME RANKS OPTION…
    local name=$1 ranks=$2
    shift 2
    rm -rf trained
    train "$ranks" trained "$@"
    cmp one/model.safetensors trained/model.safetensors || fail "$name: other bits than one rank"
    losses one >want.csv
    losses trained | cmp - want.csv || fail "$name: other figures than one rank"
}
pipeline() { # STAGES SCHEDULE [MORE]
    echo "\"pipeline\": {\"stages\": $1, \"schedule\": \"$2\"${3:+, $3}}"
}

config 0
train 1 one
for zero in 1 2 3; do
    config $zero
    like_one "two copies of two ranks, stage $zero" 4 --shard-size 2
done
config 0 "$(pipeline 2 gpipe)"
like_one "gpipe, stage 0" 2
config 1 "$(pipeline 2 zb-h1)"
like_one "zb-h1, stage 1" 2
config 1 "$(pipeline 2 1f1b)"
like_one "1f1b, stage 1" 2
config 2 "$(pipeline 2 interleaved '"chunks": 2')"
like_one "interleaved, stage 2" 4
config 3 "$(pipeline 2 1f1b '"activation_checkpoint_interval": 1')"
like_one "1f1b, recomputed, stage 3" 4
config 3 "$(pipeline 2 1f1b)"
like_one "2 stages x 2 copies x 2 ranks, stage 3" 8 --shard-size 2

# A checkpoint of this mesh goes on with one rank.
rm -rf moved
train 4 moved --save-steps 2
rm -rf moved/checkpoint-3 moved/model.safetensors
echo checkpoint-2 >moved/latest
config 0
train 1 moved --resume
cmp one/model.safetensors moved/model.safetensors || fail "resumed with one rank: other bits"

# Where ranks cannot open each other's memory, stages send through host memory, said once.
config 1 "$(pipeline 2 1f1b)"
export FAKE_GPU_1=ipc=0
like_one "through host memory" 4
unset FAKE_GPU_1
[ "$(cat out err | grep -c 'goes through host memory, each byte twice')" = 1 ] ||
    fail "through host memory: not said once"
