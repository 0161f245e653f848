# label: full
# What a run says and does where a GPU is not there, cannot be used or fails, on a GPU that a fake
# driver plays; and what plans and generates beside one.
# timeout: 300, not under sanitizers
. "$SOURCE/tests/support/expect.sh"
gpu_program=${SIFR_GPU_PROGRAM:-$BUILD/tests/sifr_on_fake_gpu}
gpu() { "$gpu_program" "$@"; }
unset FAKE_GPU
# says FILE COUNT PATTERN: so many lines of it do
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
off='"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}'
echo '{"train_batch_size": 2, "train_micro_batch_size_per_gpu": 2}' >ds.json
echo "{\"train_batch_size\": 2, $off}" >away.json
train() { # CODE OPTION…
    local code=$1
    shift
    rm -rf trained
    expect "$code" gpu train --model model --data text --seq-length 8 --max-steps 2 --threads 1 \
        --output trained "$@"
}
# refused CODE PATTERN DEVICE: one line says it, nothing is left
refused() {
    train "$1" --config ds.json --device "$3"
    [ "$(wc -l <err)" = 1 ] || { cat err; fail "more than a line"; }
    says err 1 "^sifr train: $2"
    [ ! -e trained ] || fail "a run that did not start left a folder"
}

# --- the GPU that is there is taken, nothing is said; and again by the CPU ---
train 0 --config ds.json
says out 1 'model: llama.* sm_90$'
says out 0 'device auto'
[ ! -s err ] || fail "said: $(cat err)"
train 0 --config ds.json --device cpu
cp trained/model.safetensors by-cpu

# --- no GPU: auto says so once and trains on the CPU, cuda ends ---
without() { # PATTERN: with FAKE_GPU as it is
    train 0 --config ds.json
    says out 1 "^device auto: the CPU, which is many times slower than a GPU: $1"
    [ ! -s err ] || fail "said: $(cat err)"
    cmp by-cpu trained/model.safetensors || fail "auto is not the CPU"
    refused 1 "device cuda: $1" cuda
}
export FAKE_GPU=devices=0
without "NVIDIA's driver .*sees no GPU"
FAKE_GPU=driver=11080
without "NVIDIA's driver is too old: it serves CUDA 11.8, and sifr needs 13.0; install driver 580"
FAKE_GPU=capability=75
without "Fake GPU has compute capability 7.5, and sifr's kernels need 8.0"

# --- a GPU that others have filled, or that does not start: the run ends, also with auto ---
FAKE_GPU=context=2
refused 3 'memory: Fake GPU \(GPU-.*\) has no room for this process.s context, .*nvidia-smi' auto
FAKE_GPU=memory=200000
refused 3 'memory: a rank takes [0-9.]+ [KM]iB of the GPU \(.*\), and [0-9.]+ KiB are free for it; nvidia-smi' \
    auto
FAKE_GPU=image=209
refused 1 'Fake GPU: the driver takes no kernels of this program, which was built for 80 90a, for its generation 9.0 \(fake: error 209\); install .*TARGETS=90\), .*--device cpu' \
    cuda
FAKE_GPU=image=2
refused 3 'loading the kernels of fake: CUDA_ERROR_OUT_OF_MEMORY 2 ' cuda

# --- cuBLASLt that fails in a product, and own products in its place; a word that is no wish ---
echo '{"train_batch_size": 2, "train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}}' >bf16.json
FAKE_GPU=cublaslt=2
train 1 --config bf16.json
says err 1 '^sifr train: .*cublasLtMatmul \(.*\): CUBLAS_STATUS_EXECUTION_FAILED'
SIFR_CUDA_PRODUCTS=own train 0 --config bf16.json
FAKE_GPU=cublaslt=1,pined=0
train 2 --config bf16.json
says err 1 '^FAKE_GPU: pined=0: no such wish'

# --- a GPU that fails in a step: one line, no second failure, the folder stays as it was ---
FAKE_GPU=launches=40,error=719
train 1 --config ds.json
says err 1 '^sifr train: .*CUDA_ERROR_LAUNCH_FAILED 719 .*; this process cannot use the GPU any more: start it again$'
[ "$(wc -l <err)" = 1 ] || fail "more than a line: $(cat err)"
[ ! -e trained/model.safetensors ] || fail "a run that failed wrote a model"

# --- host memory that the system does not pin: said once with its cost, the same bits ---
unset FAKE_GPU
train 0 --config away.json
says err 0 'refused to pin'
cp trained/model.safetensors pinned
FAKE_GPU=pinned=0 train 0 --config away.json
says err 1 'warning: the system refused to pin [0-9.]+ [KM]iB of host memory: .* about twice as long'
cmp pinned trained/model.safetensors || fail "unpinned memory: other bits"

# --- more host memory than there is: what takes it there, and what to do ---
sed 's/"hidden_size": 16/"hidden_size": 512/; s/"intermediate_size": 32/"intermediate_size": 1024/;
     s/"num_hidden_layers": 1/"num_hidden_layers": 8/' tiny.json >large.json
"$SIFR" init --config large.json --tokenizer tok --output large --seed 3 >/dev/null
(ulimit -d 200000 && train 3 --config away.json --model large)
says err 1 '^sifr train: memory: the run takes .* of host memory \(.*moments .*\), .* "nvme" in place of "cpu"'
rm -r large

# --- a word that is none ---
SIFR_DEVICE_WAITS=never train 2 --config ds.json
says err 1 '^sifr train: .*SIFR_DEVICE_WAITS=never: it is host .* or device'
SIFR_DEVICE_CHECK=yes train 2 --config ds.json
says err 1 '^sifr train: .*SIFR_DEVICE_CHECK=yes: it is 1 .* or 0'

# --- generation beside a GPU ---
expect 0 gpu generate --model model --prompt "good bad" --max-new-tokens 2
says err 1 '^sifr generate: runs on the CPU, .* Fake GPU here: generation is not built for GPUs yet'
cp out by-gpu
FAKE_GPU=devices=0 expect 0 gpu generate --model model --prompt "good bad" --max-new-tokens 2
[ ! -s err ] || fail "said: $(cat err)"
cmp out by-gpu || fail "generated other text"

# --- plans: for this machine's GPU, or for one that is described ---
plan() { # CODE OPTION…
    local code=$1
    shift
    expect "$code" gpu plan --model model --seq-length 8 "$@"
}
plan 0 --config away.json
says out 1 '^It fits: a rank takes .* of the device.s memory and .* of the host.s, and may take .*iB of the device'
says out 1 '^machine .*, measured here$'
says out 1 '^copies .* GB/s each way$'
plan 2 --config ds.json --fit
says err 1 'the run is for the GPU of this machine, and tiers are not chosen for that yet'
plan 0 --config ds.json --device cpu
says out 0 "device's"
export FAKE_GPU=devices=0
plan 0 --config ds.json
says err 1 "device auto: a plan for the CPU: NVIDIA's driver"
plan 1 --config ds.json --device cuda
says err 1 "^sifr plan: device cuda: NVIDIA's driver .*; .*: --machine examples/h100.json"
plan 0 --config ds.json --device cuda --machine "$SOURCE/examples/h100.json"
plan 2 --config ds.json --device cpu --machine "$SOURCE/examples/h100.json"
says err 1 'h100.json: describes a GPU, and sifr.device is "cpu"'
