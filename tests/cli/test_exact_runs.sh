# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
# sifr.tp_exact as a user has it: after 10 steps the weights and all losses of 1, 2, 4 and 8 tensor
# ranks are the same bits, in fp32 and bf16, with ZeRO, data ranks and pipeline stages beside them;
# what is moved is what was planned, and partial sums take 4 bytes; a run goes on with another number
# of tensor ranks as if there had been no change, and with another tp_exact says that results
# differ; what it does not go with is refused by name.
. "$SOURCE/tests/support/ranks.sh"
tiny_model
sed -i 's/"intermediate_size": 160/"intermediate_size": 120/; s/_heads": [42]/_heads": 8/g' tiny.json
rm -r model
"$SIFR" init --config tiny.json --tokenizer tok --output model --seed 3 >/dev/null
# settings TENSORS STAGE [PIECES [MORE]]: ds.json
settings() {
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": $2},
 "bf16": {"enabled": ${bf16:-false}},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "tensor_parallel": {"enabled": true, "size": $1},
 "sifr": {"seq_length": 32, "max_steps": 10, "save_steps": 5, "tp_exact": ${3:-8}}${4:-}}
J
}
train() {
    run=$1 ranks=$2
    shift 2
    $launcher -np "$ranks" "$SIFR" train --config ds.json --model model --data text --json \
        --output "$run" "$@" >out 2>err || fail "$run: exit code $?"
}
settings 1 0
train one 1
grep -q '^bits: .*every number of tensor ranks up to tp_exact (8)' err || fail "bits are not said"
for t in 2 8; do
    settings $t 0
    train t$t $t
    same t$t one
done
# One sum forward in each of 2 blocks' o and down; backward one for each of q, k, v, gate and up:
# 4 bytes an element. The other ranks' parts of 32 x 64 values, 4 micro batches, 10 steps.
want=$((2 * 7 * 4 * 32 * 64 * 4 / 8 * 7 * 10))
groups | grep -E "^tensors (gathered|reduced)" >moved
printf 'tensors gathered %s %s\ntensors reduced %s %s\n' $want $want $want $want | diff - moved >&2 ||
    fail "moved: $(cat moved)"
settings 4 3
train four 8
same four one
settings 2 1 8 ', "pipeline": {"enabled": true, "partition": "uniform", "stages": 2}'
train staged 4
same staged one

# LAMB's sums over weights are integers, so their parts decide nothing.
for run in "1 0 1" "2 0 2" "4 3 8"; do
    set -- $run
    settings "$1" "$2"
    sed -i 's/"AdamW"/"Lamb"/' ds.json
    train "lamb$1" "$3"
done
same lamb2 lamb1
same lamb4 lamb1

# On with another number of tensor ranks: the same bits as without a break.
on() { # NAME FROM TENSORS STAGE RANKS [PIECES]
    cp -r "$2" "$1"
    rm -r "$1/checkpoint-10"
    settings "$3" "$4" "${6:-8}"
    train "$1" "$5" --resume
}
on fewer four 1 0 1
same fewer one
! grep -q 'results will differ' err || fail "fewer: $(cat err)"
on more one 2 2 4
same more one
on other one 2 0 2 4
grep -q 'was made with tp_exact 8, this run has 4: continuing, but results will differ' err ||
    fail "other: the difference is not said: $(cat err)"
on without one 1 0 1 0
grep -q 'was made with tp_exact 8, this run has 0' err || fail "without: it is not said"

bf16=true
settings 1 0
train half 1
settings 4 2
train half4 4
same half4 half
bf16=false

# refused TENSORS PIECES MESSAGE [OPTION...]: with four ranks
refused() {
    settings "$1" 3 "$2"
    sed -i "${edit:-}" ds.json
    want=$3
    shift 3
    "$SIFR" plan --config ds.json --model "${model:-model}" --world-size 4 "$@" >out 2>err &&
        fail "$want: it runs"
    grep -q -- "$want" err || fail "$want: $(cat err)"
}
refused 1 3 'sifr.tp_exact is 3; give 2, 4 or 8'
refused 4 2 'sifr.tp_exact is 2, which 4 tensor ranks do not divide'
refused 1 8 'an adapter (LoRA) of .* is not supported with tp_exact yet' --lora '{"r": 4}'
sed 's/"num_key_value_heads": 8/"num_key_value_heads": 2/' tiny.json >two.json
"$SIFR" init --config two.json --tokenizer tok --output two-heads --seed 3 >/dev/null
model=two-heads
refused 1 8 'the most for this model is 2'
model=model
edit='s/"stage": 3/&, "zero_quantized_weights": true/'
refused 1 8 'sifr.tp_exact: zero_quantized_weights is not supported with tp_exact yet'
edit='s/"enabled": false}/"enabled": true, "bf16_master_weights_and_grads": true}/'
refused 4 8 'tensor_parallel: stochastic rounding .* is not supported with tp_exact yet'
edit='s/"AdamW", "params": {"lr": 3e-3}/"Adafactor"/'
refused 1 8 'sifr.tp_exact: Adafactor, an optimizer that reads whole gradients, by rows and columns, is not supported with tp_exact yet'
edit='s/"stage": 3/&, "zero_quantized_gradients": true/'
refused 1 8 'sifr.tp_exact: zero_quantized_gradients is not supported with tp_exact yet'
edit='s/"optimizer"/"compression": {"type": "powerSGD"}, &/'
refused 1 8 'sifr.tp_exact: compression (powerSGD) is not supported with tp_exact yet'
edit='s/"tp_exact"/"context_parallel": {"size": 2}, &/'
refused 1 8 'sifr.tp_exact: context ranks are not supported with tp_exact yet'
edit='s/"stage": 3/&, "offload_optimizer": {"device": "cpu"}/'
refused 2 8 'tensor_parallel: offloaded state is not supported with tp_exact yet'
