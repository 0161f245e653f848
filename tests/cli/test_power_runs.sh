# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
# PowerSGD as a user starts it, on 2 and 4 ranks at each ZeRO stage: plain steps first, then the wire
# falls to what the plan says, measured; the same bits from run to run and at each stage; a killed
# run goes on with the bits of one that was not; on other ranks its errors are dropped, which is
# said; beside tensor and context ranks, pipeline stages, offload and LoRA, also over a base in 4 and
# 8 bits; what does not go with it is refused.
. "$SOURCE/tests/support/ranks.sh"
tiny_model
# settings STAGE START [MORE]: ds.json
settings() {
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1,
 "zero_optimization": {"stage": $1${4:-}},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "compression": {"type": "powerSGD", "params": {"matrix_approximation_rank": 2,
                                                "start_compressing_after_step": $2}},
 "sifr": {"seq_length": 32, "max_steps": 12, "save_steps": 4}${3:-}}
J
}
train() {
    run=$1 ranks=$2
    shift 2
    $launcher -np "$ranks" "$SIFR" train --config ds.json --model model --data text --json \
        --output "$run" "$@" >out 2>err || fail "$run: exit code $?"
}
# moved: bytes that the ranks delivered in out, where a plan says how many; fails where they are others
moved() {
    awk '/"bytes":/ { gsub(",", "", $2); bytes = $2 }
        /"planned":/ { n++; sum += bytes; if ($2 != bytes) bad = 1 }
        END { print sum; exit bad || !n }' out
}
exact() { moved >bytes || fail "$run: other bytes than planned"; }
settings 0 100
train late 2
exact
plain=$(cat bytes)
sed -i '/"compression"/,/}},/d' ds.json
train off 2
same late off
! grep -q compression err || fail "off: $(cat err)"

settings 1 3
train two 2
exact
grep -q 'bits: reproducible with 2 ranks only: gradients are compressed (powerSGD) after 3 steps' err ||
    fail "the class of exactness is not said: $(cat err)"
grep -q '^compression powerSGD: after 3 steps, sums of gradients of 16 of 16 matrices are made of' err ||
    fail "the start is not said"
! cmp -s two/model.safetensors off/model.safetensors || fail "compression changes nothing"
[ "$(awk -F, 'FNR < 6 { print $3 }' two/metrics.csv)" = \
    "$(awk -F, 'FNR < 6 { print $3 }' off/metrics.csv)" ] || fail "the first steps are not plain"
settings 0 3
train zero 2
exact
same zero two
# 9 of 12 steps are compressed.
[ $(($(cat bytes) * 3)) -lt "$plain" ] || fail "the wire does not fall: $(cat bytes) of $plain"

settings 1 3
train four 4
exact
# A plan says what data ranks add, and what of it crosses hosts.
"$SIFR" plan --config ds.json --model model --world-size 4 --ranks-per-host 2 --seq-length 32 >plan \
    2>err || fail "plan: $(cat err)"
grep -qE '^  batch +[0-9.]+ KiB in gathers, [0-9.]+ KiB in reductions; [0-9.]+ KiB from other hosts' plan ||
    fail "no wire of data ranks: $(cat plan)"
settings 3 3
train again 4
exact
same again four
grep -q 'gradients stay whole on each rank at ZeRO stage 3' err || fail "stage 3: $(cat err)"
settings 1 3
cp -r four killed
rm -r killed/checkpoint-12 killed/checkpoint-8
train killed 4 --resume
same killed four
cp -r four fewer
rm -r fewer/checkpoint-12
train fewer 2 --resume
grep -q 'errors of compressed gradients are dropped: they are those of 4 ranks' err ||
    fail "fewer: that errors are dropped is not said: $(cat err)"
cp -r four damaged
rm -r damaged/checkpoint-12
printf x | dd of=damaged/checkpoint-8/compressed-00002-of-00004.safetensors bs=1 seek=9000 \
    conv=notrunc 2>/dev/null
train damaged 4 --resume
grep -q 'checkpoint-8 is damaged (.*compressed-00002-of-00004.safetensors: has checksum' err ||
    fail "damaged: $(cat err)"
same damaged four

# Beside others: as planned, and the same on a second run.
beside() { # NAME RANKS [OPTION...]
    name=$1
    train "$@"
    exact
    shift
    train "$name-again" "$@"
    same "$name-again" "$name"
}
bits() { sha256sum <"$(ls "$1"/*model.safetensors)"; } # of an adapter, too
settings 1 3 ', "tensor_parallel": {"enabled": true, "size": 2}'
beside tensors 4
settings 0 3 ', "pipeline": {"stages": 2}'
beside stages 4
settings 1 3 ', "sequence_parallel_size": 2'
beside contexts 4
settings 3 3 ', "sequence_parallel_size": 2'
train contexts-3 4
same contexts-3 contexts
rm -r contexts/checkpoint-12
settings 1 3
train contexts 2 --resume
grep -q 'errors of compressed gradients are dropped: they are those of 2 context ranks' err ||
    fail "contexts: that errors are dropped is not said: $(cat err)"
settings 1 3 ', "fp16": {"enabled": true, "initial_scale_power": 18}'
beside half 2
settings 1 3 '' ', "offload_optimizer": {"device": "nvme", "nvme_path": "swap"}'
mkdir swap
beside offload 2
same offload two
settings 1 3
beside adapter 2 --lora '{"r": 8}'
nf4='"quantization": {"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"}'
settings 1 3
sed -i "s/\"save_steps\": 4/&, $nf4/" ds.json
beside four-bits 4 --lora '{"r": 8}'
settings 3 3 '' ', "zero_quantized_nontrainable_weights": true'
beside eight-bits 4 --lora '{"r": 8}'

settings 1 3
"$SIFR" plan --config ds.json --model model --world-size 2 >out 2>err || fail "plan: $(cat err)"
grep -q '^compression  powerSGD of rank 2; before it, in the first 3 steps, ' out ||
    fail "plan: $(cat out)"
grep -q '^errors  ' out || fail "plan does not show errors: $(cat out)"
"$SIFR" train --config ds.json --model model --data text --output single --dry-run >out 2>err ||
    fail "one rank: $(cat err)"

# Where no matrix is compressed, a run is one without, and says so; the same of gathers of
# parameters that all stay whole.
settings 3 3 '' ', "zero_quantized_weights": true, "stage3_param_persistence_threshold": 10000000'
sed -i 's/"matrix_approximation_rank": 2/&, "min_compression_rate": 100/' ds.json
train none 2
same none off
grep -q '^bits: the same on 1, 2, 4' err || fail "none: $(cat err)"
grep -q 'powerSGD has no effect: at rank 2 and min_compression_rate 100, none of 16 mat' err ||
    fail "none: that nothing is compressed is not said: $(cat err)"
grep -q '^zero_quantized_weights has no effect: all parameters stay whole' err ||
    fail "none: that no gather has codes is not said: $(cat err)"

# refused STAGE START MORE MESSAGE
refused() {
    settings "$1" "$2" "$3"
    "$SIFR" plan --config ds.json --model model --world-size 2 >out 2>err && fail "$4: it runs"
    grep -q -- "$4" err || fail "$4: $(cat err)"
}
refused 1 1 '' 'start_compressing_after_step is 1; with .* at least 2'
refused 1 3 ', "communication_data_type": "bf16"' 'a communication_data_type of 16 bits is not supp'
refused 1 3 ', "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "bf16"}' \
    'sums of gradients in 16 bits are not supported with powerSGD yet'
settings 3 3 '' ', "zero_quantized_gradients": true'
"$SIFR" plan --config ds.json --model model --world-size 2 >out 2>err && fail "with qgZ it runs"
grep -q 'compression: zero_quantized_gradients is not supported with powerSGD yet' err ||
    fail "qgZ: $(cat err)"
