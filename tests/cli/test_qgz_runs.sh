# Gradients that travel in 4 bits (zero_quantized_gradients), on real ranks, as a user starts them:
# the same weights from run to run and when resumed on as many ranks, each group's wire as planned,
# beside the rest of ZeRO++, stages and adapters; what is refused.
# timeout: 300, not under sanitizers (MPI keeps what it took), each MPI
. "$SOURCE/tests/support/ranks.sh"
tiny_model

settings() { # PRECISION KEYS OF zero_optimization [MORE] [MORE OF sifr]
    cat >ds.json <<J
{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 0.5,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}}, ${3:-}
 "bf16": {"enabled": $([ $1 = bf16 ] && echo true || echo false)},
 "zero_optimization": {$2},
 "sifr": {"seq_length": 64, "max_steps": 4, "threads": 1, "save_steps": 2${4:-}}}
J
}
train() { # OUTPUT RANKS OPTION...
    rm -rf "$1"
    "$SIFR" train --config ds.json --model model --data text --output "$1" --ranks "$2" \
        "${@:3}" >out 2>err || fail "$case: exit code $?"
}
# What the run in out moved: a line OPERATION BYTES PLANNED each.
wire() {
    awk '/^    "[a-z]+": [{]/ { gsub(/[":{]/, ""); operation = $1 }
        operation && /^      "bytes":/ { gsub(",", "", $2); bytes = $2 }
        operation && /^      "planned":/ { gsub(",", "", $2); print operation, bytes, $2 }' out
}
# Gradients were exchanged, as many bytes as planned, and nothing was reduced.
moved() {
    wire | awk '$2 != $3 { bad = 1 } $1 == "exchanged" && $2 > 0 { n = 1 }
        $1 == "reduced" && $2 > 0 { bad = 1 } END { exit bad || !n }' ||
        fail "$case: the wire: $(wire)"
}
plain='"stage": 3'
sums='"zero_quantized_gradients": true'
all="$plain, $sums, \"zero_quantized_weights\": true, \"zero_hpz_partition_size\": 2"

for how in "2 fp32 2" "4 bf16 3" "8 fp32 3"; do # ranks, precision, stage
    set -- $how
    case="$1 ranks, $2, stage $3"
    settings $2 "\"stage\": $3"
    train plain $1
    settings $2 "\"stage\": $3, $sums"
    train coded $1 --json
    moved
    grep -q 'zero_quantized_gradients: gradients travel in 4 bits, among all ranks' out err ||
        fail "$case: not said"
    grep -q "reproducible with $1 ranks only: gradients travel in 4 bits" out err ||
        fail "$case: the class is not said"
    cmp -s plain/model.safetensors coded/model.safetensors && fail "$case: the bits of none"
    train again $1
    same again coded
    train again $1 --max-steps 2
    "$SIFR" train --config ds.json --model model --data text --output again --ranks $1 --resume \
        --max-steps 4 >out 2>err || fail "$case: resumed: exit code $?"
    cmp -s again/model.safetensors coded/model.safetensors || fail "$case: resumed: other weights"
done
case="resumed on other ranks"
rm -rf again
settings fp32 "$plain, $sums"
train again 4 --max-steps 2
"$SIFR" train --config ds.json --model model --data text --output again --ranks 2 --resume \
    --max-steps 4 >out 2>err || fail "$case: exit code $?"
grep -qi 'differ' out err || fail "$case: not said"

case="the three together, two stages"
settings bf16 "$all" '"pipeline": {"stages": 2},'
train coded 8 --json
groups | awk '$3 != $4 { bad = 1 } END { exit bad }' || fail "$case: the wire: $(groups)"
groups | grep -q '^shards exchanged' || fail "$case: $(groups)"
train again 8
same again coded

case="adapters"
settings bf16 "$all" "" ', "lora": {"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}'
train coded 4 --json
moved
cp coded/adapter_model.safetensors kept
train again 4
cmp -s again/adapter_model.safetensors kept || fail "$case: other weights"

refused() { # MESSAGE
    local code=0
    "$SIFR" plan --config ds.json --model model --world-size 4 >out 2>err || code=$?
    [ $code = 2 ] || fail "$1: exit code $code"
    grep -qF -- "$1" err || fail "$1: another message"
}
settings bf16 "\"stage\": 1, $sums"
refused "zero_quantized_gradients: at ZeRO stage 1 gradients are not cut into slices"
settings bf16 "$plain, $sums" '"communication_data_type": "bf16",'
refused "leave one of both out"
case="plan"
settings bf16 "$plain, $sums"
"$SIFR" plan --config ds.json --model model --world-size 8 --ranks-per-host 4 >out 2>err ||
    fail "plan: exit code $?"
grep -q 'in exchanges' out || fail "plan: no exchanges"
grep -q '^outgoing ' out || fail "plan: no class of memory"
# --fit chooses none, and says where they would pay.
settings bf16 "$plain"
link() { # BYTES A SECOND
    cat >machine.json <<J
{"fp32_operations_per_s": 1e12, "bf16_operations_per_s": 1e12, "memory_bytes_per_s": 1e11,
 "host_latency_s": 1e-7, "host_bytes_per_s": 1e12, "network_latency_s": 1e-7,
 "network_bytes_per_s": $1}
J
    "$SIFR" plan --config ds.json --model model --world-size 8 --ranks-per-host 4 --fit \
        --machine machine.json >out 2>err || fail "--fit: exit code $?"
}
link 1e6
grep -Eq '^would pay +zero_quantized.*; not chosen, as bits are other ones: ' err ||
    fail "--fit: no proposal"
link 1e13
! grep -q '^would pay' err || fail "--fit: codes for a fast link"
echo "all: $SECONDS s"
