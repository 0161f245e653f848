# Decoder families without an op of their own through the program: the tiny folders of
# tests/golden/make_dense.py train to the same bits on 2 ranks at ZeRO 3 with recomputation, and in
# tiles; they evaluate; an export is what the run wrote; config.json and generation_config.json come
# out byte for byte.
# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/ranks.sh"
trap 'kill $(jobs -p) 2>/dev/null || :; wait || :' EXIT

STORE_WORDS=23
. "$SOURCE/tests/support/small_store.sh"
for stage in 0 3; do
    cat >ds$stage.json <<J
{"train_batch_size": 2, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.1}},
 "zero_optimization": {"stage": $stage},
 "sifr": {"seq_length": 40, "max_steps": 2, "logging_steps": 1}}
J
done
sed 's/"train_batch_size": 2/"train_batch_size": 1/' ds0.json >dslong.json
sed 's/": 2,/": 32,/; s/gpu": 1/gpu": 32/' ds0.json >dswide.json # for learned positions
train() { # CONFIG OUTPUT OPTION...
    "$SIFR" train --config ds$1.json --data store --model "$folder" --threads 1 --output "${@:2}" \
        >out 2>err || fail "$name: $*"
}
same() { cmp "$1/model.safetensors" "$2/model.safetensors" || fail "$name: $2: other weights"; }

count=0
for folder in "$SOURCE"/tests/golden/dense/models/*; do
    name=$(basename "$folder")
    rm -rf one other exported whole tiles
    train 0 one --save-steps 2
    train 3 other --ranks 2 --recompute unit
    same one other
    for file in config.json generation_config.json; do
        cmp "$folder/$file" one/$file || fail "$name: another $file"
    done
    expect 0 "$SIFR" export one/checkpoint-2 exported
    same one exported
    expect 0 "$SIFR" eval --model one --data store --seq-length 40 --max-windows 2
    # bf16, and values of which tiles hold a part
    form=long length=2048
    case $name in opt*) form=wide length=64 ;; esac
    train $form whole --bf16 --seq-length $length --max-steps 1
    train $form tiles --bf16 --seq-length $length --max-steps 1 --tile-tokens 1024
    same whole tiles
    count=$((count + 1))
done
[ $count -ge 18 ] || fail "only $count folders"
