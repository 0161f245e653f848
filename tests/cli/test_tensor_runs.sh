# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
# Tensor ranks as a user starts them: the losses of one rank within 1e-5 over 20 steps, on 2 and 4
# tensor ranks and with ZeRO over data ranks beside them, whose bits are those without; what each
# axis moved is what was planned; ZeRO++ beside them; a run goes on with more or fewer tensor ranks; what does not go
# with them is refused by name.
. "$SOURCE/tests/support/ranks.sh"
tiny_model
# settings SIZE STAGE [MORE]: ds.json
settings() {
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": $2},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "tensor_parallel": {"enabled": true, "size": $1},
 "sifr": {"seq_length": 32, "max_steps": 20, "save_steps": 10}${3:-}}
J
}
train() {
    run=$1 ranks=$2
    shift 2
    $launcher -np "$ranks" "$SIFR" train --config ds.json --model model --data text --json \
        --output "$run" "$@" >out 2>err || fail "$run: exit code $?"
}
# near RUN [ONE]: losses and norms of one/ within 1e-5 and 1e-4
near() {
    awk -F, 'FNR == 1 { next } NR == FNR { loss[$1] = $3; norm[$1] = $4; next }
        { n++; a = $3 / loss[$1] - 1; b = $4 / norm[$1] - 1
          if (a * a > 1e-10 || b * b > 1e-8) { print "step " $1 ": " $3 " and " $4; bad = 1 } }
        END { exit bad || n != 20 }' "${2:-one}/metrics.csv" "$1/metrics.csv" >difference ||
        fail "$1: $(cat difference)"
}
settings 1 0
train one 1
settings 2 0
train two 2
near two
grep -q '^tensor_parallel: 16 of 16 matrices are divided among 2 ranks; each has ' err ||
    fail "what is cut is not said"
grep -q '^mesh: 2 tensors, all on one host' err || fail "the mesh is not said"
# Two blocks of two sums each way, one of the embedding and one of the gradient of the head's input, 8
# micro batches of 32 x 64 fp32, 20 steps, from the other rank; 5 numbers of the vocabulary's blocks,
# and one more, for each token.
want=$((((2 * 2 * 2 + 2) * 64 + 6) * 8 * 32 * 4 / 2 * 20))
groups | grep -E "^tensors (gathered|reduced)" >moved
printf 'tensors gathered %s %s\ntensors reduced %s %s\n' $want $want $want $want | diff - moved >&2 ||
    fail "moved: $(cat moved)"
settings 2 3
train four 4
same four two
groups | awk '$3 != $4 { exit 1 }' || fail "other bytes than planned: $(groups)"
# ZeRO++ beside them: a second copy changes no bit, and gathers in 8 bits the same on any ranks.
zero() { # MORE
    settings 2 3
    sed -i 's/"stage": 3/&, '"$1"'/' ds.json
}
zero '"zero_hpz_partition_size": 2'
train hpz 8
same hpz two
zero '"zero_quantized_weights": true'
train quantised 2
zero '"zero_quantized_weights": true, "zero_hpz_partition_size": 2'
train both 8
same both quantised
mkdir -p swap
zero '"offload_optimizer": {"device": "nvme", "nvme_path": "swap"}' # state on disk: the same bits
train swapped 4
same swapped two
! cmp -s quantised/model.safetensors two/model.safetensors || fail "8 bits change nothing"

# Two kv heads: two ranks have each, and what they make of its gradient is added up and counted once.
settings 4 0
train wide 4
near wide
grep -q '^tensor_parallel: 14 of 16 matrices are divided among 4 ranks; each has ' err ||
    fail "wide: $(grep tensor_parallel err)"
settings 4 3
train wide-eight 8
same wide-eight wide
groups | awk '$3 != $4 { exit 1 }' || fail "other bytes than planned: $(groups)"
groups | grep -q '^alike reduced [1-9]' || fail "no sums over ranks that have the same kv heads"

# Three ranks: of a model with three kv heads a head each; two have two and one, and of an odd MLP
# 81 and 80 columns.
sed 's/"num_attention_heads": 4/"num_attention_heads": 6/; s/"num_key_value_heads": 2/"num_key_value_heads": 3/
    s/"intermediate_size": 160/"intermediate_size": 161/; s/"hidden_size": 64/"hidden_size": 96/' \
    tiny.json >odd.json
"$SIFR" init --config odd.json --tokenizer tok --output odd --seed 3 >/dev/null
settings 1 0
train odd-one 1 --model odd --learning-rate 1e-3
settings 2 0
train odd-two 2 --model odd --learning-rate 1e-3
near odd-two odd-one
grep -q '^tensor_parallel: 16 of 16 matrices' err || fail "odd: $(grep tensor_parallel err)"
settings 2 3
train odd-four 4 --model odd --learning-rate 1e-3
same odd-four odd-two
settings 3 0
train odd-three 3 --model odd --learning-rate 1e-3
near odd-three odd-one

# Norms of queries and keys: their gradients are sums over the ranks, once a step.
sed 's/llama/qwen3/; s/Llama/Qwen3/' tiny.json >qwen.json
"$SIFR" init --config qwen.json --tokenizer tok --output qwen --seed 3 >/dev/null
settings 1 0
train qwen-one 1 --model qwen
settings 2 0
train qwen-two 2 --model qwen
near qwen-two qwen-one
grep -q '^tensor_parallel: 16 of 16 matrices' err || fail "qwen3: $(grep tensor_parallel err)"
settings 2 3
train qwen-four 4 --model qwen
same qwen-four qwen-two
groups | awk '$3 != $4 { exit 1 }' || fail "other bytes than planned: $(groups)"

# Adapters: the first factor of a matrix that is cut by outputs is whole, the second one of a matrix
# that is cut by inputs; dropout between them draws by the numbers of whole values. What is saved
# goes on with another number of ranks.
lora='{"r": 4, "lora_alpha": 8, "lora_dropout": 0.1, "target_modules": "all-linear"}'
settings 1 0
train lora-one 1 --lora "$lora"
settings 2 0
train lora-two 2 --lora "$lora"
near lora-two lora-one
grep -q '^tensor_parallel: [0-9]* of [0-9]* matrices are divided' err || fail "lora: $(cat err)"
settings 2 3
train lora-four 4 --lora "$lora"
cmp lora-four/adapter_model.safetensors lora-two/adapter_model.safetensors || fail "lora: other bits"
groups | awk '$3 != $4 { exit 1 }' || fail "other bytes than planned: $(groups)"
# Magnitudes too, which begin as the norms of whole weights.
dora='{"r": 4, "lora_alpha": 8, "use_dora": true, "target_modules": "all-linear"}'
settings 1 0
train dora-one 1 --lora "$dora"
settings 2 0
train dora-two 2 --lora "$dora"
near dora-two dora-one
settings 2 3
train dora-four 4 --lora "$dora"
cmp dora-four/adapter_model.safetensors dora-two/adapter_model.safetensors || fail "dora: other bits"
groups | awk '$3 != $4 { exit 1 }' || fail "other bytes than planned: $(groups)"
settings 4 0 # keys' and values' magnitudes and factors, which two ranks have alike
train dora-wide 4 --lora "$dora"
near dora-wide dora-one
cp -r lora-four lora-on
rm -r lora-on/checkpoint-20
settings 1 0
train lora-on 1 --lora "$lora" --resume
near lora-on lora-one

# On with another number of tensor ranks: what was saved is the same, so the losses stay near.
# on NAME FROM SIZE STAGE RANKS
on() {
    cp -r "$2" "$1"
    rm -r "$1/checkpoint-20"
    settings "$3" "$4"
    train "$1" "$5" --resume
    near "$1"
}
on fewer four 1 0 1
grep -q 'was made with tensor ranks 2, this run has 1: continuing, but results will differ' err ||
    fail "fewer: the difference is not said"
on more one 2 2 4
grep -q 'was made with tensor ranks 1, this run has 2' err || fail "more: it is not said"
on of-wide wide 1 0 1
on to-wide one 4 3 8
cp -r odd-four odd-on # heads that lie unevenly
rm -r odd-on/checkpoint-20
settings 3 1
train odd-on 3 --model odd --learning-rate 1e-3 --resume
near odd-on odd-one
on again four 2 1 2
same again two
! grep -q 'results will differ' err || fail "again: $(cat err)"

# refused SIZE MORE MESSAGE [OPTION...]: with four ranks
refused() {
    settings "$1" 0 "$2"
    want=$3
    shift 3
    "$SIFR" plan --config ds.json --model model --world-size 4 "$@" >out 2>err && fail "$want: it runs"
    grep -q -- "$want" err || fail "$want: $(cat err)"
}
refused 3 '' 'tensor_parallel.size is 3, which does not divide 4 ranks; give 2 or 4'
refused 2 '' 'on several hosts of 1 rank each, .* yet; leave them out, or start a multiple of 2 ranks on' \
    --ranks-per-host 1
zero '"offload_param": {"device": "nvme", "nvme_path": "swap"}'
"$SIFR" plan --config ds.json --model model --world-size 4 >out 2>err && fail "offload: it runs"
grep -q 'offload of parameters, gradients or activations is not supported with 2 tensor' err ||
    fail "offload: $(cat err)"
# Optimizers that go neither by elements, nor by sums over a weight, nor by whole matrices.
while read -r type reads; do
    settings 2 0
    sed -i 's/"type": "AdamW", "params": {"lr": 3e-3}/"type": "'"$type"'"/' ds.json
    "$SIFR" plan --config ds.json --model model --world-size 4 >out 2>err && fail "$type: it runs"
    grep -q "an optimizer that reads $reads, is not supported with 2 tensor ranks yet" err ||
        fail "$type: $(cat err)"
done <<'J'
Adafactor whole gradients, by rows and columns
AdamW8bit elements by blocks, which have a code's scale in common
J
