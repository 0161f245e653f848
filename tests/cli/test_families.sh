# Every family of decoders through the program: its tiny folder trains to the same bits at 1, 2 and 4
# ranks, ZeRO 0 and 3, with recomputation, and in tiles; it evaluates; an export is what the run
# wrote; config.json and generation_config.json come out byte for byte.
# label: full; timeout: 600, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/ranks.sh"
trap 'kill $(jobs -p) 2>/dev/null || :; wait || :' EXIT

. "$SOURCE/tests/support/small_store.sh"

for stage in 0 3; do
    cat >ds$stage.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.1}},
 "zero_optimization": {"stage": $stage},
 "sifr": {"seq_length": 40, "max_steps": 2, "logging_steps": 1}}
J
done
sed 's/"train_batch_size": 4/"train_batch_size": 1/' ds0.json >dslong.json
train() { # CONFIG OUTPUT OPTION...
    "$SIFR" train --config ds$1.json --data store --model "$folder" --threads 1 --output "${@:2}" \
        >out 2>err || fail "$name: $*"
}
same() { cmp "$1/model.safetensors" "$2/model.safetensors" || fail "$name: $2: other weights"; }

count=0
for folder in "$SOURCE"/tests/golden/families/models/*; do
    name=$(basename "$folder")
    train 0 one --save-steps 2
    for run in 1:3:unit 2:0:none 4:3:none; do
        IFS=: read -r ranks stage recompute <<<"$run"
        train $stage $run --ranks $ranks --recompute $recompute
        same one $run
    done
    cmp "$folder/config.json" one/config.json || fail "$name: another config.json"
    cmp "$folder/generation_config.json" one/generation_config.json || fail "$name: not carried along"

    expect 0 "$SIFR" export one/checkpoint-2 exported
    for file in model.safetensors config.json generation_config.json; do
        cmp one/$file exported/$file || fail "$name: the export has another $file"
    done
    expect 0 "$SIFR" eval --model one --data store --seq-length 40 --max-windows 3

    # bf16, and values of which tiles hold a part
    train long whole --bf16 --seq-length 2048 --max-steps 1
    train long tiles --bf16 --seq-length 2048 --max-steps 1 --tile-tokens 1024
    same whole tiles
    cmp "$folder/config.json" whole/config.json || fail "$name: another config.json after bf16"
    rm -rf one ?:?:* exported whole tiles
    count=$((count + 1))
done
[ $count -ge 20 ] || fail "only $count families"
