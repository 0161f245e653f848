# label: short
# What a rank computes on, as a user chooses it. This machine's driver, if there is one, is hidden:
# the program must do without.
. "$SOURCE/tests/support/expect.sh"
sifr() { "$SIFR" "$@"; }
complains() { [ "$(wc -l <err)" = 1 ] && grep -qF -- "$1" err || { cat err; fail "no '$1'"; }; }
export CUDA_VISIBLE_DEVICES=

awk 'BEGIN { for (i = 0; i < 400; i++) print "good bad food was were day the a very red big one two" }' >text
sifr tokenizer train --vocab-size 280 --data text --output tok >/dev/null 2>&1
cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 280,
 "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": false}
J
sifr init --config tiny.json --tokenizer tok --output model --seed 3 >/dev/null
run() { # CODE DEVICE OPTION…
    local code=$1 device=$2
    shift 2
    rm -rf out-$device
    expect "$code" sifr train --device "$device" --model model --data text --seq-length 32 \
        --max-steps 2 --threads 1 --output "out-$device" "$@"
}
run 0 cpu
run 0 auto
cmp out-cpu/model.safetensors out-auto/model.safetensors || fail "auto is not the CPU"
run 1 cuda
complains 'sifr train: '
grep -qE 'build it with `make CUDA=1`|driver|GPU' err || fail "no reason: $(cat err)"
[ ! -e out-cuda ] || fail "a run that did not start left a folder"

# A GPU that this program has no kernels for: said once, unless the CPU was asked for.
if "$SIFR" doctor | grep -q '^CUDA kernels   none'; then
    . "$SOURCE/tests/support/nvidia_driver.sh"
    driver serving 13000 0
    rm -r out-cpu
    LD_LIBRARY_PATH=$PWD/serving run 0 cpu
    [ ! -s err ] || fail "said: $(cat err)"
    LD_LIBRARY_PATH=$PWD/serving run 0 auto
    complains 'device auto: the CPU, which is many times slower than a GPU: this program is built '
    complains 'without kernels for GPUs: build it with `make CUDA=1`, or use the CPU (--device cpu)'
    LD_LIBRARY_PATH=$PWD/serving expect 0 sifr plan --model model --seq-length 32
    grep -q '^sifr plan: device auto: a plan for the CPU: this program is built without' err ||
        fail "the plan: $(cat err)"
fi

run 2 gpu
complains '--device must be one of auto, cpu, cuda, not "gpu"'
echo '{"train_batch_size": 8, "sifr": {"device": "cuda"}}' >ds.json
expect 1 sifr train --config ds.json --model model --data text --seq-length 32 --max-steps 2 \
    --threads 1 --output trained
grep -q 'device cuda' err || grep -qE 'driver|GPU' err || fail "the key: $(cat err)"
expect 1 sifr train --device cuda --ranks 2 \
    --model model --data text --seq-length 32 --max-steps 2 --threads 1 --output trained
grep -qE 'build it with `make CUDA=1`|driver|GPU' err || fail "two ranks: $(cat err)"
