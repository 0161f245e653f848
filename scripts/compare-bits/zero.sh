# shellcheck shell=bash
# Topic of compare-bits.sh: the matrix of the same-bits tests: models x precisions x ZeRO stages x
# ranks, step orders, recomputation, threads, keys of transfers, state on disk, tiles, 16-bit sums.
keys() { # what steers the transfers, and must not change a result
    case $1 in
    0) echo ', "stage3_prefetch_bucket_size": 0, "overlap_comm": false' ;;
    1) echo ', "stage3_prefetch_bucket_size": 5e7, "stage3_max_reuse_distance": 1e9,
        "stage3_param_persistence_threshold": 10000, "reduce_bucket_size": 5e8' ;;
    2) echo ', "stage3_prefetch_bucket_size": 40000, "stage3_max_live_parameters": 60000,
        "stage3_param_persistence_threshold": 16000, "reduce_bucket_size": 20000' ;;
    3) echo ', "sub_group_size": 1000, "stage3_param_persistence_threshold": 20000' ;;
    esac
}
zero_run() { # BATCH STAGE PRECISION SUMS MORE_OF_ZERO OPTION…
    local warm='{"warmup_min_lr": 1e-3, "warmup_num_steps": 4}' kind=
    mkdir -p swap
    [ "$3" = fp32 ] || kind="\"$3\": {\"enabled\": true$([ "$3" = bf16 ] || echo ', "initial_scale_power": 18')},"
    batch=$1 steps=4 ds "\"scheduler\": {\"type\": \"WarmupLR\", \"params\": $warm}, $kind
        \"data_types\": {\"grad_accum_dtype\": \"$4\"}, \"zero_optimization\": {\"stage\": $2$5},"
    shift 5
    run "$sifr" train --config ds.json --data store --output out "$@"
    digest out
}

orders=(batch unit) recomputes=(none unit) names=(tied untied gpt2) counts=(1 2 4 8)
precisions=(fp32 bf16 fp16)
for m in 0 1 2; do
    for s in 0 1 2 3; do
        for r in 0 1 2 3; do
            order=${orders[$(((2 * m + 2 * s + 3 * r) / 2 % 2))]} key=$(((m + s + r) % 4))
            recompute=${recomputes[$(((m + 3 * s) % 2))]} threads=$(((3 * m + s) / 2 % 2 + 1))
            compare "${names[m]} ${precisions[m]}, stage $s, ${counts[r]} ranks, $order, keys $key, $recompute" \
                zero_run 8 $s "${precisions[m]}" fp32 "$(keys $key)" --ranks "${counts[r]}" \
                --model "${names[m]}" --step-order "$order" --recompute "$recompute" --threads $threads
        done
    done
done
for each in 0:1:batch 2:2:unit 3:4:batch; do
    IFS=: read -r stage ranks order <<<"$each"
    compare "16-bit sums, stage $stage, $order" zero_run 8 "$stage" bf16 bf16 "$(keys 0)" \
        --ranks "$ranks" --model untied --step-order "$order"
done
disk='{"device": "nvme", "nvme_path": "swap"}'
for each in 0:1:fp32:untied 1:2:bf16:tied 2:2:fp16:gpt2 3:4:bf16:untied; do
    IFS=: read -r stage ranks precision name <<<"$each"
    more=", \"offload_optimizer\": $disk"
    [ "$stage" != 3 ] || more+=", \"offload_param\": $disk"
    compare "state on disk, stage $stage, $precision, $name" zero_run 8 "$stage" "$precision" fp32 \
        "$more" --ranks "$ranks" --model "$name"
done
for each in 2:1:--offload-gradients 0:1:--offload-activations 3:2:--offload-activations; do
    IFS=: read -r stage ranks option <<<"$each"
    compare "$option, stage $stage, $ranks ranks" zero_run 8 "$stage" bf16 fp32 '' --ranks "$ranks" \
        --model tied "$option" nvme --nvme-path swap
done
# no power of two: right, and the same as before on as many
compare "stage 3, fp32, untied, 3 ranks" zero_run 9 3 fp32 fp32 "$(keys 1)" --ranks 3 --model untied
compare "tiles of 1024 tokens, 2048 in a micro batch" zero_run 32 3 bf16 fp32 '' --ranks 2 \
    --model untied --per-device-train-batch-size 16 --seq-length 128 --tile-tokens 1024
compare "sums in sequence" zero_run 8 2 fp32 fp32 '' --ranks 2 --model gpt2 --gradient-order sequential
