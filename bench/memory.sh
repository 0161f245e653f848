#!/bin/bash
# Memory as planned and as measured: memory.sh [BUILD]
# Trains two small models in some thirty ways (ZeRO stages, ranks, types, recomputation, step
# orders, tiles, 16-bit sums and states, what is on disk) and writes bench/results/memory.md: what the
# plan says a rank takes, and the most that a rank of the run took, the program itself left out. Exit
# code 1 where one is off by more than 5 %. Some minutes; times play no part in it.
set -eu -o pipefail
cd "$(dirname "$0")/.."
sifr=$PWD/${1:-build}/sifr
out=$PWD/bench/results/memory.md
commit=$(git rev-parse --short=12 HEAD)
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-memory.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat README.md docs/*.md >"$work/text"
cd "$work"

sizes='"max_position_embeddings": 1024, "vocab_size": 2048, "eos_token_id": 0, "bos_token_id": 0'
cat >llama.json <<J
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512,
 "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4,
 "intermediate_size": 1408, "tie_word_embeddings": false, $sizes}
J
cat >gpt2.json <<J
{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 512, "n_layer": 6,
 "n_head": 8, "n_positions": 1024, $sizes}
J
"$sifr" tokenizer train --vocab-size 2048 --data text --output tokenizer >log
"$sifr" tokenize --tokenizer tokenizer --data text --output store >log
for model in llama gpt2; do
    "$sifr" init --config $model.json --tokenizer tokenizer --output $model >log
done

number() { sed -n "s/^  \"$1\": \([0-9]*\).*/\1/p" "$2" | sed -n 1p; }
failed=0 count=0
: >rows
on_disk() { case $disk in "$1" | all) echo nvme ;; *) echo none ;; esac; }
# MODEL RANKS STAGE TYPE RECOMPUTE ORDER [SUMS [DISK [KEYS OF bf16 [KEYS OF sifr]]]]
# DISK: none, state, parameters, gradients, activations, all
measure() {
    local model=$1 ranks=$2 stage=$3 type=$4 recompute=$5 order=$6 sums=${7:-fp32} disk=${8:-none}
    local path="\"nvme_path\": \"$work\""
    local launch= shown=$recompute keys=${10:-}
    [ -n "$keys" ] || keys='"seq_length": 256'
    case $keys in *tile_tokens*) shown="$recompute, tiles" ;; esac
    [ "$ranks" = 1 ] || launch="--ranks $ranks"
    cat >ds.json <<J
{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2,
 "bf16": {"enabled": $([ "$type" = bf16 ] && echo true || echo false)${9:+, $9}},
 "fp16": {"enabled": $([ "$type" = fp16 ] && echo true || echo false)},
 "data_types": {"grad_accum_dtype": "$sums"},
 "zero_optimization": {"stage": $stage,
  "offload_optimizer": {"device": "$(on_disk state)", $path},
  "offload_param": {"device": "$(on_disk parameters)", $path}},
 "sifr": {"offload_gradients": "$(on_disk gradients)", $path, "max_steps": 2,
  "offload_activations": "$(on_disk activations)", "recompute": "$recompute",
  "step_order": "$order", "threads": 1, $keys}}
J
    rm -rf trained
    "$sifr" plan --config ds.json --model $model --world-size "$ranks" --json >plan.json
    "$sifr" train --config ds.json --model $model --data store --output trained $launch --json \
        >train.json 2>log || { cat log >&2; exit 1; }
    local planned measured
    planned=$(number peak_bytes plan.json) measured=$(number measured_bytes train.json)
    count=$((count + 1))
    awk -v model=$model -v ranks="$ranks" -v stage="$stage" -v type="$type" \
        -v recompute="$shown" -v order="$order" -v sums="$sums" -v disk="$disk" -v keys="${9:-}" \
        -v planned="$planned" -v measured="$measured" 'BEGIN {
        off = measured - planned; size = off < 0 ? -off : off
        printf "| %s | %d | %s | %s | %s | %s | %s | %s | %s | %.1f | %.1f | %+.1f | %+.2f %% |\n", model, ranks,
            stage, type, sums, recompute, order, keys == "" ? "fp32" : keys ~ /master/ ? "bf16, no masters" : "bf16", disk,
            planned / 2^20, measured / 2^20, off / 2^20, 100 * off / planned
        exit size > 0.05 * planned }' >>rows || failed=1
    tail -n 1 rows
}

for model in llama gpt2; do
    for type in fp32 bf16 fp16; do
        for recompute in none unit; do measure $model 1 0 $type $recompute batch; done
    done
done
measure llama 1 0 bf16 none unit
measure gpt2 1 0 bf16 none batch bf16
measure llama 1 0 bf16 none batch fp32 state
measure gpt2 1 0 fp32 none batch fp32 state
for stage in 0 1 2 3; do measure llama 2 $stage bf16 none batch; done
measure llama 2 3 bf16 unit batch
measure llama 2 3 bf16 none unit
measure llama 2 2 fp32 none batch
measure llama 2 2 bf16 none batch bf16
measure llama 2 3 bf16 none batch fp32 state
measure llama 1 3 bf16 none batch fp32 all
measure llama 1 3 bf16 none unit fp32 all
measure llama 2 3 bf16 none batch fp32 all
moments='"bf16_optimizer_states": true' masters='"bf16_master_weights_and_grads": true'
measure llama 1 0 bf16 none batch fp32 none "$moments"
measure llama 2 2 bf16 unit batch bf16 none "$moments, $masters"
measure gpt2 2 3 bf16 none batch bf16 state "$moments, $masters"
for stage in 1 2 3; do measure gpt2 4 $stage bf16 none batch; done
for disk in parameters gradients activations; do
    measure llama 1 3 bf16 none unit fp32 $disk
    measure gpt2 2 3 fp32 none unit fp32 $disk
done
measure llama 1 0 bf16 auto batch fp32 none "" '"seq_length": 256, "activation_memory": 40000000'
measure llama 1 0 bf16 unit batch fp32 none "" '"seq_length": 1024, "tile_tokens": 1024'

{
    echo '# Memory: planned and measured'
    echo
    echo "$(date -u +'%Y-%m-%d %H:%M UTC'), commit $commit, $("$sifr" --version | sed -n 1p);"
    echo "$(sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo), $(nproc) cores."
    echo
    echo "Made by \`bench/memory.sh\`: $count configurations, 2 micro batches of 4 sequences of 256 (1,024 with tiles)"
    echo 'tokens, one thread a rank. Planned: `sifr plan`, of a rank. Measured: the most of any rank of'
    echo 'the run, anonymous memory and an even share of the windows, less what the program itself took'
    echo 'before. MiB.'
    echo
    echo '| model | ranks | stage | type | sums | recompute | step order | optimizer state | on disk | planned | measured | off | |'
    echo '|---|---|---|---|---|---|---|---|---|---|---|---|---|'
    cat rows
    echo
    if [ $failed = 0 ]; then
        echo 'All are within 5 %.'
    else
        echo '**Not all are within 5 %.**'
    fi
} >"$out.tmp"
mv "$out.tmp" "$out"
exit $failed
