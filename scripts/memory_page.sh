#!/bin/bash
# What `sifr plan` says in docs/memory.md, docs/offload.md, docs/context.md and the pages that lead
# through a job:
# memory_page.sh [PROGRAM [DOCS]]
# Runs the commands of these pages and puts them, with what they print, between their markers.
set -eu -o pipefail
cd "$(dirname "$0")/.."
tree=$PWD
sifr=$(realpath "${1:-build/sifr}")
docs=$(realpath "${2:-docs}")
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
# One instruction set, since scratch depends on it; that one, because most processors have it.
cat >ds.json <<'J'
{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8, "bf16": {"enabled": true},
 "zero_optimization": {"stage": 1}, "sifr": {"seq_length": 4096, "threads": 8, "isa": "avx2"}}
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
put() { "$tree/scripts/page-part.sh" "$docs/${2:-memory}.md" "$1"; } # NAME [PAGE]: standard input there

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

# --- activations on disk: a Llama of 134M on two cores ---
mkdir llama-134m
cat >llama-134m/config.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 32000,
 "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
 "intermediate_size": 2048, "max_position_embeddings": 1048576, "tie_word_embeddings": false}
J
cat >two-cores.json <<'J'
{"version": 1, "fp32_operations_per_s": 2e11, "memory_bytes_per_s": 3e10,
 "instruction_s": 5e-6, "disk_bytes_per_s": 1e9}
J
activations() { # TIER OPTION...
    cat >activations.json <<J
{"train_micro_batch_size_per_gpu": 1,
 "sifr": {"offload_activations": "$1", "nvme_path": "/local_nvme", "threads": 2}}
J
    "$sifr" plan --config activations.json --model llama-134m --machine two-cores.json "${@:2}" \
        --json >activations.out
}
number() { sed -n "/$1/,\$s/^ *\"$2\": \([0-9.e-]*\).*/\1/p" activations.out | sed -n 1p; } # AFTER KEY
compare() { # NAME OPTION...
    local memory step
    activations none "${@:2}"
    memory=$(number . peak_bytes) step=$(number . step_s)
    activations nvme "${@:2}"
    awk -v name="$1" -v memory="$memory" -v step="$step" -v with="$(number . peak_bytes)" \
        -v disk="$(number '"nvme"' bytes)" -v moved="$(number '"nvme"' written_bytes)" \
        -v slower="$(number . step_s)" 'BEGIN {
        printf "| %s | %.2f GiB | %.2f GiB and %.2f GiB on disk | %.2f GiB | %+.0f %% |\n", name,
            memory / 2^30, with / 2^30, disk / 2^30, moved / 2^30, 100 * (slower / step - 1) }'
}
limit() { # NAME OPTION...
    echo -n "| $1"
    for tier in none nvme; do
        activations $tier --device-memory 4GiB "${@:2}" >/dev/null
        sed -n 's/^  "largest_seq_length": \([0-9]*\).*/\1/p' activations.out |
            sed ':a; s/\B[0-9]\{3\}\>/,&/; ta; s/^/ | /' | tr -d '\n'
    done
    echo ' | | |'
}
unit="--recompute unit" one="--seq-length 4096" eight="--gradient-accumulation-steps 8 --step-order unit"
{
    echo '| | in memory | on disk | written, and read | predicted |'
    echo '|---|---|---|---|---|'
    compare '1 x 4,096 tokens' $one
    compare 'the same, `recompute` "unit"' $one $unit
    compare '8 micro batches, step order "unit"' $one $eight
    compare 'the same, `recompute` "unit"' $one $eight $unit
    limit 'longest sequence in 4 GiB' $one
    limit 'the same, `recompute` "unit"' $one $unit
} | put activations offload

# --- what a job takes, at the head of its page: on eight cores, whose rates are those that such
# machines reach (examples/eight_cores.json) ---
ln -s "$tree/examples" examples
takes() { # PAGE ARGUMENT OF plan…: what fits a disk depends on where it runs
    show sifr plan "${@:2}" --machine examples/eight_cores.json --threads 8 --isa avx2 |
        sed -n '1,2p; / machine\. disk: /d; /^    \(step \|predicted \|It \)/p' |
        sed '$s/$/\n/' | put plan "$1"
}
# shown PAGE FILE: the file as the page shows it
shown() { awk -v mark="<!-- file $2 -->" '$0 == mark { on = 1; next }
    on && /^    / { print substr($0, 5); seen = 1; next }
    on && seen && NF { exit }' "$docs/$1.md" >"$2"; }
mkdir Qwen2.5-0.5B-Instruct
cat >Qwen2.5-0.5B-Instruct/config.json <<'J'
{"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 151936,
 "hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14,
 "num_key_value_heads": 2, "intermediate_size": 4864, "max_position_embeddings": 32768,
 "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": true}
J
takes tune-on-chats --model Qwen2.5-0.5B-Instruct --bf16 --seq-length 1024 \
    --per-device-train-batch-size 4 --host-memory 16GiB
takes preferences --model Qwen2.5-0.5B-Instruct --bf16 --preference sigmoid --seq-length 1024 \
    --per-device-train-batch-size 4 --host-memory 16GiB
mkdir deberta-v3-base
cat >deberta-v3-base/config.json <<'J'
{"model_type": "deberta-v2", "architectures": ["DebertaV2ForSequenceClassification"],
 "vocab_size": 128100, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
 "intermediate_size": 3072, "max_position_embeddings": 512, "relative_attention": true,
 "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": true,
 "pos_att_type": "p2c|c2p", "max_relative_positions": -1, "position_biased_input": false,
 "type_vocab_size": 0, "num_labels": 2}
J
takes classify-with-deberta --model deberta-v3-base --bf16 --seq-length 128 \
    --per-device-train-batch-size 32 --host-memory 16GiB
mkdir Llama-3.2-1B
cat >Llama-3.2-1B/config.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128256,
 "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
 "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192,
 "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
 "rope_theta": 500000.0, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0,
 "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}}
J
shown lora lora.json
takes lora --config lora.json --model Llama-3.2-1B --seq-length 1024 \
    --per-device-train-batch-size 4 --recompute unit --host-memory 8GiB
shown come-from-deepspeed ds.json
takes come-from-deepspeed --config ds.json --model Llama-3.2-1B --bf16 --seq-length 2048 \
    --per-device-train-batch-size 1 --gradient-accumulation-steps 8 --world-size 4 \
    --host-memory 64GiB
mkdir Qwen2.5-1.5B-Instruct
cat >Qwen2.5-1.5B-Instruct/config.json <<'J'
{"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 151936,
 "hidden_size": 1536, "num_hidden_layers": 28, "num_attention_heads": 12,
 "num_key_value_heads": 2, "intermediate_size": 8960, "max_position_embeddings": 32768,
 "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": true}
J
shown come-from-axolotl-or-trl axolotl.yaml
"$sifr" import --config axolotl.yaml --overwrite ds.json 2>import.log
takes come-from-axolotl-or-trl --config ds.json --host-memory 64GiB

# --- meshes of H100s, eight on a host ---
mkdir llama-70b
sed 's/"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32/"hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64/; s/14336/28672/' \
    llama-8b/config.json >llama-70b/config.json
# mesh_row DEVICES MODEL SEQUENCES ZERO STAGES SHARD_SIZE [WORD [MORE OF ZERO [MORE OF PIPELINE]]]:
# a row of the table, WORD behind the ZeRO stage or the number of stages
mesh_row() {
    local pipeline="" more='"recompute": "unit"'
    [ "$5" = 1 ] || pipeline="\"pipeline\": {\"stages\": $5${9:+, $9}}, "
    [ "$6" = 0 ] || more="$more, \"shard_size\": $6"
    cat >mesh.json <<J
{"train_batch_size": $3, "train_micro_batch_size_per_gpu": 1,
 "zero_optimization": {"stage": $4${8:+, $8}}, $pipeline"sifr": {$more}}
J
    "$sifr" plan --config mesh.json --model "$2" --world-size "$1" --machine "$machine" \
        --threads 8 --bf16 --seq-length 4096 --json >mesh.out
    awk -v head="| $1 | $2 | $4${8:+, $7} | $5${9:+, $7} | $([ "$6" = 0 ] || echo "$6") |" '
        /^  "peak_bytes":/ { memory = $2 + 0 }
        /"fullest_bytes":/ { memory = $2 + 0 }
        /^  "fits":/ { fits = $2 ~ /true/ }
        /"step_s":/ && !step { step = $2 + 0 }
        /"waiting_s":/ && !waits { waits = $2 + 0 }
        /"crossing_bytes":/ { crossing += $2 }
        END {
            printf "%s %.1f GiB%s | %.2f s | %.0f %% | %s |\n", head, memory / 2^30,
                fits ? "" : ", too much", step, 100 * waits / step,
                crossing ? sprintf("%.1f GiB", crossing / 2^30) : "-"
        }' mesh.out
}
machine=examples/h100.json
{
    echo '| devices | model | ZeRO | stages | `shard_size` | memory of a rank | step | waiting | from other hosts |'
    echo '|---|---|---|---|---|---|---|---|---|'
    mesh_row 2 Llama-3.2-1B 64 0 1 0
    mesh_row 2 Llama-3.2-1B 64 1 1 0
    mesh_row 2 Llama-3.2-1B 64 0 2 0
    mesh_row 2 llama-8b 64 3 1 0
    mesh_row 2 llama-8b 64 3 1 0 'state on the host' '"offload_optimizer": {"device": "cpu"}'
    mesh_row 8 llama-8b 64 1 1 0
    mesh_row 8 llama-8b 64 3 1 0
    mesh_row 8 llama-8b 64 1 4 0
    mesh_row 64 llama-8b 256 3 1 0
    mesh_row 64 llama-8b 256 3 1 0 'hpZ 8' '"zero_hpz_partition_size": 8'
    mesh_row 64 llama-8b 256 3 1 8
    mesh_row 64 llama-8b 256 1 1 8
    mesh_row 64 llama-8b 256 1 4 0
    mesh_row 1024 llama-70b 2048 3 1 0
    mesh_row 1024 llama-70b 2048 3 1 0 'hpZ 8' '"zero_hpz_partition_size": 8'
    mesh_row 1024 llama-70b 2048 3 1 64
    mesh_row 1024 llama-70b 2048 3 8 8
    mesh_row 1024 llama-70b 2048 3 8 8 interleaved '' '"schedule": "interleaved"'
} | put meshes parallelism
show sifr plan --config mesh.json --model llama-70b --world-size 1024 --machine examples/h100.json \
    --threads 8 --bf16 --seq-length 4096 |
    sed -n '1,2p; /^    ranks /,/^    predicted /p' | sed '$s/$/\n/' | put thousand parallelism
# Where a host's eight share 100 Gbit/s, a step waits for the network.
sed 's/"network_bytes_per_s": 376e9/"network_bytes_per_s": 12e9/' "$tree/examples/h100.json" >ethernet.json
machine=ethernet.json
{
    echo '| devices | model | ZeRO | memory of a rank | step | waiting | from other hosts |'
    echo '|---|---|---|---|---|---|---|'
    {
        mesh_row 64 llama-8b 256 3 1 0
        mesh_row 64 llama-8b 256 3 1 0 'hpZ 8' '"zero_hpz_partition_size": 8'
        mesh_row 1024 llama-70b 2048 3 1 0
        mesh_row 1024 llama-70b 2048 3 1 0 'hpZ 8' '"zero_hpz_partition_size": 8'
    } | cut -d '|' -f 1-4,7-
} | put hpz zeropp

# --- the longest sequence of Llama-8B that context ranks hold, in 80 GB each ---
# longest RANKS KIND NEAR [DISK]: prints it, which is near so many tokens; with DISK state and
# activations are there, and the bytes that a rank has there with NEAR tokens are printed, too.
longest() {
    local zero='"stage": 3' more="" away='{"device": "nvme", "nvme_path": "/local_nvme"}'
    if [ -n "${4:-}" ]; then
        zero="$zero, \"offload_optimizer\": $away, \"offload_param\": $away"
        more=', "offload_gradients": "nvme", "offload_activations": "nvme"'
    fi
    cat >contexts.json <<J
{"train_batch_size": 1, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
 "zero_optimization": {$zero},
 "sifr": {"recompute": "unit", "tile_tokens": 8192,
          "context_parallel": {"size": $1, "kind": "$2"}$more}}
J
    "$sifr" plan --config contexts.json --model llama-8b --world-size "$1" --seq-length "$3" \
        --device-memory 80GB --machine machine.json --threads 1 --isa avx2 ${4:+--nvme "$4"} \
        --json 2>contexts.err | awk '
        $1 == "\"largest_seq_length\":" { n = $2 + 0 }
        $1 == "\"nvme\":" { inside = 1 }
        inside && $1 == "\"bytes\":" { bytes = $2 + 0; inside = 0 }
        END {
            if (!n) { print "does not fit"; exit }
            printf n < 1e6 ? "%.0f K" : "%.1f M", n < 1e6 ? n / 1e3 : n / 1e6
            if (bytes) printf ", %.0f GB there", bytes / 1e9
            print "" }'
}
contexts_row() { # RANKS NEAR NEAR_WITH_DISK PUBLISHED
    echo "| $1 | $(longest "$1" ulysses "$2") | $(longest "$1" gather "$2") | $(longest "$1" ulysses "$3" 1000TiB) | $4 |"
}
{
    echo '| ranks | `ulysses` | `gather` | `ulysses`, state and activations on disk | ALST on as many H100, published |'
    echo '|---|---|---|---|---|'
    contexts_row 1 65536 1000000 '500 K'
    contexts_row 8 1400000 5500000 '3.7 M'
    contexts_row 32 5200000 11700000 '15 M'
} | put contexts context

# --- full training, LoRA and QLoRA in 4 GiB ---
mkdir SmolLM2-135M TinyLlama-1.1B open_llama_3b
cat >SmolLM2-135M/config.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 49152,
 "hidden_size": 576, "num_hidden_layers": 30, "num_attention_heads": 9,
 "num_key_value_heads": 3, "intermediate_size": 1536, "max_position_embeddings": 8192,
 "rms_norm_eps": 1e-5, "rope_theta": 100000.0, "tie_word_embeddings": true}
J
cat >TinyLlama-1.1B/config.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 32000,
 "hidden_size": 2048, "num_hidden_layers": 22, "num_attention_heads": 32,
 "num_key_value_heads": 4, "intermediate_size": 5632, "max_position_embeddings": 2048,
 "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false}
J
cat >open_llama_3b/config.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 32000,
 "hidden_size": 3200, "num_hidden_layers": 26, "num_attention_heads": 32,
 "num_key_value_heads": 32, "intermediate_size": 8640, "max_position_embeddings": 2048,
 "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false}
J
shown qlora qlora.json
sed 's/"all-linear"},/"all-linear"}}}/; /quantization/,$d' qlora.json >lora.json
in_4_gib() { # NAME ARGUMENT OF plan…
    show sifr plan "${@:2}" --seq-length 512 --per-device-train-batch-size 1 --recompute unit \
        --host-memory 4GiB --machine examples/eight_cores.json --threads 8 --isa avx2 |
        sed -n '1,2p; /^    \(predicted \|It \)/p' | sed '$s/$/\n/' | put "$1" qlora
}
in_4_gib full --model SmolLM2-135M --bf16
in_4_gib lora --config lora.json --model TinyLlama-1.1B
in_4_gib qlora --config qlora.json --model open_llama_3b

# --- models of this year by name: all weights, LoRA and QLoRA, as the page's commands train them,
# and what 24, 64 and 128 GiB hold ---
shown tune-new-models lora.json
shown tune-new-models qlora.json
echo '{"bf16": {"enabled": true}}' >all.json
tune_row() { # NAME OF A RELEASED MODEL: a row of the table
    local way order
    for way in all lora qlora; do
        order=tree
        [ $way != all ] || order=sequential
        "$sifr" plan --config $way.json --model "$1" --seq-length 1024 \
            --per-device-train-batch-size 1 --gradient-accumulation-steps 8 \
            --gradient-order $order --recompute unit --host-memory 2TiB \
            --machine examples/eight_cores.json --threads 8 --isa avx2 --json >$way.out
    done
    awk -v name="${1#*/}" '
        FNR == 1 { way++ }
        /^  "peak_bytes":/ { peak[way] = $2 / 2^30 }
        /^  "baseline_bytes":/ { base[way] = $2 / 2^30 }
        /"step_s":/ && !step[way] { step[way] = $2 + 0 }
        END {
            split("all weights,LoRA,QLoRA", said, ",")
            split("24 64 128", sizes, " ")
            printf "| %s | %.1f GiB | %.1f GiB | %.1f GiB", name, peak[1], peak[2], peak[3]
            for (s = 1; s <= 3; s++) {
                for (w = 1; w <= 3 && peak[w] + base[w] > sizes[s] - 2; w++) continue
                if (w > 3) printf " | -"
                else printf " | %s, %.3g tokens/s", said[w], 8 * 1024 / step[w]
            }
            print " |"
        }' all.out lora.out qlora.out
}
{
    echo '| model | all weights | LoRA | QLoRA | in 24 GiB | in 64 GiB | in 128 GiB |'
    echo '|---|---|---|---|---|---|---|'
    tune_row google/gemma-4-31B
    tune_row google/gemma-4-12B
    tune_row google/gemma-4-E4B
    tune_row google/gemma-4-E2B
    tune_row Qwen/Qwen3.5-27B
    tune_row Qwen/Qwen3.5-9B
    tune_row Qwen/Qwen3.5-4B
    tune_row Qwen/Qwen3.5-2B
    tune_row Qwen/Qwen3.5-0.8B
    tune_row LiquidAI/LFM2-2.6B
    tune_row LiquidAI/LFM2-1.2B
    tune_row LiquidAI/LFM2-700M
    tune_row LiquidAI/LFM2-350M
} | put sizes tune-new-models
takes tune-new-models --config qlora.json --model gemma-4-12B --seq-length 1024 \
    --per-device-train-batch-size 1 --gradient-accumulation-steps 8 --recompute unit \
    --host-memory 24GiB
