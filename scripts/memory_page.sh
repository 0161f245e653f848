#!/bin/bash
# What `sifr plan` says in docs/memory.md: memory_page.sh [PROGRAM [PAGE]]
# Runs the commands of that page and puts them, with what they print, between its markers.
set -eu -o pipefail
cd "$(dirname "$0")/.."
tree=$PWD
sifr=$(realpath "${1:-build/sifr}")
page=$(realpath "${2:-docs/memory.md}")
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-page.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
export XDG_CACHE_HOME=$work/cache

mkdir llama-8b
cat >llama-8b/config.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128256,
 "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
 "num_key_value_heads": 8, "intermediate_size": 14336, "max_position_embeddings": 8192,
 "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": false}
J
cat >ds.json <<'J'
{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8, "bf16": {"enabled": true},
 "zero_optimization": {"stage": 1}, "sifr": {"seq_length": 4096, "threads": 8}}
J
cat >machine.json <<'J'
{"version": 1, "fp32_operations_per_s": 1e12, "bf16_operations_per_s": 8e12,
 "memory_bytes_per_s": 4e10, "instruction_s": 5e-6, "disk_bytes_per_s": 1e9,
 "host_latency_s": 2e-5, "host_bytes_per_s": 5e9}
J

# show COMMAND…: the command and what it prints, as a block of the page
show() {
    echo
    echo "    \$ $*"
    shift
    { "$sifr" "$@" 2>&1 || true; } | sed 's/^/    /; s/ *$//'
    echo
}
put() { "$tree/scripts/page-part.sh" "$page" "$1"; } # NAME: standard input there

run="plan --config ds.json --model llama-8b --world-size 8 --machine machine.json"
{
    for file in ds.json machine.json; do
        echo
        echo "    \$ cat $file"
        sed 's/^/    /' $file
    done
    echo
} | put files
show sifr $run --host-memory 768GiB | put ask
show sifr $run --host-memory 768GiB --fit --output fit.json | put fit
show sifr $run --host-memory 768GiB --activation-memory 60GiB | sed -n '1,2p; /^    for the backward/,/^    recompute/p; $p' | put keep
show sifr $run --host-memory 128GiB --fit --output fit.json | put none
{
    show sifr $run --host-memory 128GiB --nvme 2TiB --fit --output fit.json
    show sifr ${run/ds.json/fit.json} --host-memory 128GiB --nvme 2TiB |
        sed -n '1,2p; /^    on nvme .* read /,/^ *$/p; /^    It fits/p'
    echo
} | put disk
# Bytes a parameter by class, where each is largest, of one rank and micro batch.
states() {
    echo '| `bf16_master_weights_and_grads` | `bf16_optimizer_states` | parameters | master weights | moments | gradients | together | without gradients |'
    echo '|---|---|---|---|---|---|---|---|'
    for masters in false true; do
        for moments in false true; do
            cat >states.json <<J
{"train_batch_size": 1, "sifr": {"seq_length": 4096, "threads": 8, "recompute": "unit"},
 "bf16": {"enabled": true, "bf16_master_weights_and_grads": $masters, "bf16_optimizer_states": $moments}}
J
            "$sifr" plan --config states.json --model llama-8b --machine machine.json --json >states.out
            awk -v keys="| $masters | $moments" '
                /^  "parameters":/ { all = $2 + 0 }
                /^  "at_most":/ { inside = 1 }
                inside && /^    "/ { class = $0; gsub(/^ *"|": *\{?$/, "", class) }
                inside && $1 == "\"bytes\":" { each[class] = $2 / 1 }
                END {
                    p = each["parameters"] / all; w = each["master weights"] / all
                    m = each["moments"] / all; g = each["gradients"] / all
                    printf "%s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", keys, p, w, m, g,
                        p + w + m + g, p + w + m
                }' states.out
        done
    done
}
states | put states
show sifr $run --compare deepspeed --host-memory 768GiB | sed -n "1,2p; /^    DeepSpeed's est/,\$p" | put compare
