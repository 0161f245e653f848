# label: full
# What `sifr train --json` and `sifr eval --json` say of what ran: who computed products, who waited
# for transfers, how ranks exchanged, with why; on a GPU that a fake driver plays, and on the CPU.
# timeout: 300, not under sanitizers
. "$SOURCE/tests/support/expect.sh"
gpu_program=$BUILD/tests/sifr_on_fake_gpu
unset FAKE_GPU SIFR_DEVICE_WAITS SIFR_CUDA_PRODUCTS SIFR_TEST_NO_CUBLASLT
awk 'BEGIN { for (i = 0; i < 200; i++) print "good bad food was were day the a very red big one two" }' >text
"$SIFR" tokenizer train --vocab-size 270 --data text --output tok >/dev/null 2>&1
cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 270,
 "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
 "num_key_value_heads": 1, "max_position_embeddings": 64, "tie_word_embeddings": true}
J
"$SIFR" init --config tiny.json --tokenizer tok --output model --seed 3 >/dev/null
cat >ds.json <<'J'
{"train_batch_size": 2, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3},
 "sifr": {"collective_timeout": 60}}
J
train() { # PROGRAM OPTION…
    local program=$1
    shift
    rm -rf trained
    expect 0 timeout 100 "$program" train --config ds.json --model model --data text --seq-length 8 \
        --max-steps 3 --threads 1 --output trained --json "$@"
    # One key a line, of "ran" alone.
    sed -n '/^  "ran": {$/,/^  },*$/p' out >ran
}
# has KEY VALUE…: a line for each key; values are patterns, strings without quotes
has() {
    while [ $# -gt 0 ]; do
        grep -qE "^    \"$1\": \"?$2\"?,?\$" ran || { cat ran err; fail "$1 is not $2"; }
        shift 2
    done
}
lacks() { for key; do ! grep "\"$key\":" ran || fail "$key is there"; done; }
notices() { # COUNT PATTERN
    [ "$(sed -n '/"notices": \[/,/\]/p' ran | grep -cE "^      \"$2")" = "$1" ] ||
        { cat ran; fail "not $1 notices '$2'"; }
}
some='[1-9][0-9]*'

# --- one rank ---
train "$gpu_program"
has device 'cuda 9.0, cuBLASLt 13.0.2 for 132 multiprocessors' products 'cuBLASLt 13.0.2' \
    library_products $some own_products $some own_why 'those of a head with labels, .*' \
    waits none word_waits 0 host_waits 0 pinned true unpinned_bytes 0 exchange none notices '\[\]'
lacks waits_why exchange_why
grep -q "\"measured_classes_why\": \"the classes are in the device's own memory, whose pages the system" \
    trained/summary.json || fail "memory by class: $(cat trained/summary.json)"
SIFR_CUDA_PRODUCTS=own train "$gpu_program"
has products 'own: cuBLASLt was not asked for' library_products 0 own_products $some notices '\[\]'
lacks own_why
FAKE_GPU=pinned=0,cublaslt=0 train "$gpu_program"
has products 'own: cuBLASLt .* was not found' library_products 0 own_products $some \
    pinned false unpinned_bytes $some
notices 1 'the system refused to pin .*'
notices 1 'products run with sifr.s own kernels, .*'
train "$gpu_program" --device cpu
has device '.*L2.*' exchange none notices '\[\]'
lacks products waits pinned

# --- evaluation ---
evaluate() {
    expect 0 "$gpu_program" eval --model model --data text --seq-length 8 --max-windows 4 --json \
        --precision bf16 "$@"
    sed -n '/^  "ran": {$/,/^  },*$/p' out >ran
}
evaluate
has products 'cuBLASLt 13.0.2' library_products $some pinned true exchange none notices '\[\]'
FAKE_GPU=pinned=0,cublaslt=0 evaluate
has products 'own: cuBLASLt .* was not found' pinned false
notices 1 'the system refused to pin .*'
notices 1 'products run with sifr.s own kernels, .*'
evaluate --device cpu
has device '.*L2.*' notices '\[\]'
lacks products

if ! "$SIFR" doctor --json | grep -q '"launcher": "'; then
    echo "no MPI and launcher here: several ranks are not tested"
    exit 0
fi

# --- two ranks: counts are sums, and one that differs is named ---
train "$gpu_program"
one=$(sed -n 's/^ *"library_products": \([0-9]*\),$/\1/p' ran)
export FAKE_GPU=devices=2 FAKE_GPU_1=devices=2
train "$gpu_program" --ranks 2
has library_products $((2 * one)) waits 'words and host' word_waits $some \
    host_waits $some waits_why 'the first step' exchange IPC pinned true notices '\[\]'
lacks exchange_why
SIFR_DEVICE_WAITS=host train "$gpu_program" --ranks 2
has waits host word_waits 0 host_waits $some waits_why SIFR_DEVICE_WAITS=host exchange IPC
FAKE_GPU_1=devices=2,memops=0,ipc=0 train "$gpu_program" --ranks 2
has waits 'words and host' word_waits $some host_waits $some \
    waits_why 'the first step; rank 1: cuStreamWaitValue32: CUDA_ERROR_NOT_SUPPORTED 801.*' \
    exchange 'host memory' \
    exchange_why 'rank 1 cannot share memory with its neighbours \(cuIpcOpenMemHandle: .*801.*\)'
notices 1 'rank 1 cannot share memory .* goes through host memory, each byte twice, .*'
FAKE_GPU_1=devices=2,pinned=0 train "$gpu_program" --ranks 2
has pinned false unpinned_bytes $some
train "$gpu_program" --ranks 2 --device cpu
has exchange 'shared memory' notices '\[\]'
lacks products waits pinned
