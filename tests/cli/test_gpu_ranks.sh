# label: full
# Ranks that differ in what they have: settled by all together, the same line and code on all, none
# waits for another. GPUs are played by fake drivers, one a rank.
# timeout: 300, not under sanitizers
. "$SOURCE/tests/support/expect.sh"
if ! "$SIFR" doctor --json | grep -q '"launcher": "'; then
    echo "skipped: no MPI and launcher here: ranks are not tested"
    exit 77
fi
gpu_program=${SIFR_GPU_PROGRAM:-$BUILD/tests/sifr_on_fake_gpu}
unset FAKE_GPU
says() {
    [ "$(grep -cE -- "$3" "$1")" = "$2" ] || { cat out err; fail "$1: not $2 lines with '$3'"; }
}
awk 'BEGIN { for (i = 0; i < 200; i++) print "good bad food was were day the a very red big one two" }' >text
"$SIFR" tokenizer train --vocab-size 270 --data text --output tok >/dev/null 2>&1
cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 270,
 "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
 "num_key_value_heads": 1, "max_position_embeddings": 64, "tie_word_embeddings": true}
J
"$SIFR" init --config tiny.json --tokenizer tok --output model --seed 3 >/dev/null
echo '{"train_batch_size": 2, "sifr": {"collective_timeout": 60}}' >ds.json
train() { # CODE OPTION…
    local code=$1
    shift
    rm -rf trained
    expect "$code" timeout 100 "$gpu_program" train --ranks 2 --config ds.json --model model \
        --data text --seq-length 8 --max-steps 2 --threads 1 --output trained "$@"
}

# GPUs on both: auto takes them, and ranks that have one to themselves say nothing of sharing.
FAKE_GPU=devices=2 train 0
says out 1 'model: llama.*2 ranks.* sm_90'
says err 0 'device auto|share a GPU'
# One for both: said once, with its cost.
FAKE_GPU=devices=1 train 0
says out 1 'model: llama.*2 ranks.* sm_90'
says err 1 'warning: device cuda: 2 ranks share a GPU: .* 500 MB .* no faster than one'

# A GPU on one of two: auto is the CPU on both, and names the rank that has none.
export FAKE_GPU_1=devices=0
train 0
says err 1 "warning: device auto: the CPU, .*: rank 1: NVIDIA's driver .*sees no GPU"
says out 1 'model: llama.*2 ranks'
unset FAKE_GPU_1
export FAKE_GPU_1=capability=80
train 0
says err 1 'warning: device auto: the CPU, .*: rank 1 has a GPU of compute capability 8.0 \(Fake GPU\), and rank 0 one of 9.0'

# On none: no GPU is idle, so it is no warning.
export FAKE_GPU=devices=0 FAKE_GPU_1=driver=11080
train 0
says out 1 "device auto: the CPU, .*: NVIDIA's driver .*sees no GPU"
says err 0 'device auto'

# A GPU that fails in a later step, in which GPUs wait for transfers and hosts do not: all ranks end
# with the driver's words, and none waits.
unset FAKE_GPU_1
export FAKE_GPU=devices=2
for launches in 200 300; do
    FAKE_GPU_1=devices=2,launches=$launches,error=719 train 1 --max-steps 30
    says err 1 'CUDA_ERROR_LAUNCH_FAILED 719 .*; this process cannot use the GPU any more'
    grep -q '^step' out || fail "$launches launches are not one step"
done

# A driver that refuses waits for words: the host waits. One that takes them and never ends one: the
# ranks stand still after the first step, in which the host waits, and pass where it always does.
unset FAKE_GPU_1
FAKE_GPU=devices=2,memops=0 train 0
export FAKE_GPU=devices=2,memops=2
code=0
rm -rf trained
timeout -k 2 8 "$gpu_program" train --ranks 2 --config ds.json --model model --data text \
    --seq-length 8 --max-steps 2 --threads 1 --output trained >out 2>err || code=$?
[ $code -ge 124 ] || { cat out err; fail "waits that never end: exit code $code"; }
says out 1 '^step 1/'
says out 0 '^step [2-9]'
SIFR_DEVICE_WAITS=host train 0
