# label: full
# Ranks on GPUs that fake drivers play, as a user runs them: 1, 2 and 4 ranks at each stage of ZeRO,
# 8 at the third, and with state in host memory write the same folder; a checkpoint of two ranks goes
# on with one.
# not under sanitizers (MPI keeps what it took), timeout: 600
. "$SOURCE/tests/support/expect.sh"
program=${SIFR_GPU_PROGRAM:-$BUILD/tests/sifr_on_fake_gpu}
. "$SOURCE/tests/support/mpirun.sh"

awk 'BEGIN { for (i = 0; i < 400; i++) print "good bad food was were day the a very red big one two" }' >text
"$SIFR" tokenizer train --vocab-size 280 --data text --output tok >/dev/null 2>&1
cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 280,
 "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": false}
J
"$SIFR" init --config tiny.json --tokenizer tok --output model --seed 3 >/dev/null
config() { # ZERO
    cat <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
 "gradient_clipping": 1.0, "zero_optimization": {$1},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}}, "sifr": {"step_order": "batch"}}
J
}
run() { # RANKS OUTPUT STEPS OPTION…
    local ranks=$1 output=$2 steps=$3
    shift 3
    expect 0 "$launcher" -n "$ranks" $options "$program" train --config ds.json --model model \
        --data text --seq-length 32 --max-steps "$steps" --threads 1 --device cuda \
        --output "$output" "$@"
}

config '"stage": 0' >ds.json
run 1 one 3
for stage in 0 1 2 3; do
    config "\"stage\": $stage" >ds.json
    for ranks in 2 4 8; do
        [ "$ranks" = 8 ] && [ "$stage" -lt 3 ] && continue
        run $ranks trained 3
        cmp one/model.safetensors trained/model.safetensors ||
            fail "stage $stage, $ranks ranks: other bits than one rank"
        rm -r trained
    done
done
# GPUs wait for transfers, unless the host is to.
for waits in host device; do
    SIFR_DEVICE_WAITS=$waits run 2 trained 3
    cmp one/model.safetensors trained/model.safetensors || fail "the $waits waits: other bits"
    rm -r trained
done
# Where one rank cannot open the other's memory, all exchange through host memory, said once.
FAKE_GPU_1=ipc=0 run 2 trained 3
cmp one/model.safetensors trained/model.safetensors || fail "through host memory: other bits"
[ "$(cat out err | grep -c 'goes through host memory, each byte twice')" = 1 ] ||
    fail "through host memory: not said once"
rm -r trained
config '"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}' \
    >ds.json
run 2 away 3 --save-steps 2
cmp one/model.safetensors away/model.safetensors || fail "state in host memory: other bits"
rm -rf away/checkpoint-3 away/model.safetensors
echo checkpoint-2 >away/latest
run 1 away 3 --resume
cmp one/model.safetensors away/model.safetensors || fail "resumed with one rank: other bits"
