# shellcheck shell=bash
# Topic of compare-bits.sh: the GPU that a fake driver plays, with its kernels as C++ of the host:
# steps, ranks that read each other's memory or go through the host's, several hosts over NCCL's
# fake, state in host memory, every objective, the optimizers that GPUs have, eval and score.
gpu_run() { # MEMBERS MEMBERS_OF_sifr OPTIMIZER OPTION…
    ds "$1" "$2" "$3"
    shift 3
    run "$gpu" train --config ds.json --threads 1 --device cuda --output out "$@"
    digest out
}
staged() { # STAGE RANKS FAKE OPTION…
    local stage=$1 ranks=$2
    export FAKE_GPU=$3
    shift 3
    gpu_run "\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": $stage}," '' '' \
        --ranks "$ranks" --data store "$@"
}
on_gpu_hosts() { # FAKE
    ds '"bf16": {"enabled": true}, "zero_optimization": {"stage": 3},'
    printf 'h1 slots=1\nh2 slots=1\n' >hostfile
    export sifr=$gpu tree FAKE_GPU=$1
    unshare --net --mount --pid --fork --mount-proc --kill-child bash -eu "$parts/on_hosts.sh" 2 \
        --model tied --data store --device cuda >hosts.out 2>&1 ||
        echo "failed: exit code $?: $(tail -n 3 hosts.out)"
    digest out
}
gpu_reads() { # eval and score
    text "$gpu" eval --model tied --data held --seq-length 32 --device cuda --threads 1 --json
    run "$gpu" score --model gpt2 --data pairs.jsonl --seq-length 32 --output scores --device cuda \
        --threads 1
    digest scores
}
gpu_topic() {
    while IFS='|' read -r what stage ranks fake options; do
        # shellcheck disable=SC2086 # several words
        compare "$what, stage $stage, $ranks ranks" staged "$stage" "$ranks" "$fake" $options
    done <<'T'
bf16|0|1||--model tied
bf16, gpt2|0|1||--model gpt2
own products|0|1|cublaslt=0|--model tied
ranks|1|2||--model untied
ranks|3|2||--model gpt2 --step-order unit
through host memory|2|2|ipc=0|--model tied
recomputed|3|1||--model untied --recompute unit
stages of a pipeline|1|2||--model tied --pipeline-stages 2
shard groups|3|4||--model tied --shard-size 2
T
    compare "state in host memory" gpu_run '"zero_optimization": {"stage": 3,
        "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}},' '' '' \
        --model tied --data store
    compare "fp16" gpu_run '"fp16": {"enabled": true, "initial_scale_power": 18},' '' '' --model gpt2 \
        --data store
    for loss in sigmoid hinge ipo orpo; do
        compare "preference $loss" gpu_run '' "\"preference\": {\"loss_type\": \"$loss\"}," '' \
            --model untied --data pairs.jsonl --per-device-train-batch-size 2
    done
    compare "conversations" gpu_run '' '"chat_template": "chatml",' '' --model untied --data chats.jsonl --seq-length 96
    compare "masked words" gpu_run '' '' '' --model bert --data text.txt
    compare "masked words, deberta" gpu_run '' '' '' --model deberta --data text.txt
    compare "labels" gpu_run '' '' '' --model bert --data twos.tsv --task sequence_classification
    compare "tags" gpu_run '' '' '' --model untied --data tags.conll --task token_classification
    compare "LoRA" gpu_run '' '"lora": {"r": 4},' '' --model untied --data text
    compare "DoRA" gpu_run '' '"lora": {"r": 4, "use_dora": true},' '' --model untied --data text
    compare "QLoRA" gpu_run '' '"lora": {"r": 4}, "quantization": {"load_in_4bit": true,
        "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true},' '' --model untied --data text
    for type in SGD Adagrad Lion Lamb AdamWScheduleFree AdamW8bit; do
        compare "$type" gpu_run '' '' "{\"type\": \"$type\", \"params\": {\"lr\": 1e-3}}" --model tied \
            --data store
    done
    compare "eval and score" gpu_reads
    if [ "$(id -u)" = 0 ] && command -v ip >/dev/null && unshare --net --mount true 2>/dev/null; then
        compare "two hosts, NCCL" on_gpu_hosts ''
        compare "two hosts, host memory" on_gpu_hosts nccl=0
    fi
}
if [ "$old_gpu" ]; then gpu_topic; else skip "no played GPU was built (it needs cmocka, C++, x86-64)"; fi
