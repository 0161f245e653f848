#!/bin/bash
# A model larger than memory: larger.sh [BUILD [STEPS]]
# Trains all parameters of a Llama of 1.5 billion (AdamW, master weights in fp32) on English text,
# with state, parameters and gradients on disk, in a control group of 6 GiB, and writes
# bench/results/larger.md: what the plan said, what the run took, how quick it was, and its loss.
# Some half an hour for 20 steps, 30 GB of disk in .cache/bench; needs root for the control group.
# Exit code 1 where the run fails, takes more than it may, or does not learn.
set -eu -o pipefail
cd "$(dirname "$0")/.."
sifr=$(realpath "${1:-build}")/sifr steps=${2:-20} limit=$((6 << 30))
out=$PWD/bench/results/larger.md
work=${SIFR_BENCH_CACHE:-$PWD/.cache/bench}/larger
mkdir -p "$work"
[ -d "$work/text" ] || scripts/demo-text.sh "$work/text" >/dev/null
cd "$work"
rm -rf trained swap
mkdir swap

cat >llama.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 16000,
 "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 32,
 "num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 2048,
 "torch_dtype": "bfloat16", "tie_word_embeddings": false, "eos_token_id": 0, "bos_token_id": 0}
J
cat >ds.json <<'J'
{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1,
 "bf16": {"enabled": true}, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 6e-5, "betas": [0.9, 0.95]}},
 "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 5, "warmup_type": "linear"}},
 "zero_optimization": {"stage": 3,
  "offload_optimizer": {"device": "nvme", "nvme_path": "swap"},
  "offload_param": {"device": "nvme", "nvme_path": "swap"}},
 "sifr": {"seq_length": 512, "offload_gradients": "nvme", "logging_steps": 1}}
J
[ -d tokenizer ] || "$sifr" tokenizer train --vocab-size 16000 --data text/train --output tokenizer >log
[ -f store.idx ] || "$sifr" tokenize --tokenizer tokenizer --data text/train --output store >log
[ -d model ] || "$sifr" init --config llama.json --tokenizer tokenizer --output model >log

# A control group of this run's own, of either version.
group=/sys/fs/cgroup/memory/sifr-larger-$$ key=memory.limit_in_bytes peak=memory.max_usage_in_bytes
[ -d /sys/fs/cgroup/memory ] || group=/sys/fs/cgroup/sifr-larger-$$ key=memory.max peak=memory.peak
mkdir "$group"
trap 'rmdir "$group"; rm -rf trained swap' EXIT
echo $limit >"$group/$key"

"$sifr" plan --config ds.json --model model --device-memory $limit --json >plan.json
(echo $BASHPID >"$group/cgroup.procs" && exec "$sifr" train --config ds.json --model model \
    --data store --output trained --max-steps "$steps" --json) >train.json 2>log ||
    { tail -3 log >&2; exit 1; }
held=$(cat "$group/$peak")

# Of the outermost object.
number() { sed -n "s/^  \"$1\": \([0-9.]*\).*/\1/p" "$2" | sed -n 1p; }
# Of metrics.csv: its first line names the columns.
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
    { print $at }' trained/metrics.csv; }
losses=$(column loss)
first=$(echo "$losses" | sed -n 1p) last=$(echo "$losses" | tail -n 1)
{
    echo '# A model larger than memory, by `bench/larger.sh`'
    echo
    echo "$(date -u +'%Y-%m-%d %H:%M UTC'), commit $(git rev-parse --short=12 HEAD), $("$sifr" --version | sed -n 1p);"
    echo "$(sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo), $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg) at the end."
    echo
    awk -v parameters="$(number parameters plan.json)" -v limit=$limit -v held="$held" \
        -v planned="$(number peak_bytes plan.json)" -v measured="$(number measured_bytes train.json)" \
        -v disk="$(sed -n '/"nvme": {/,/}/s/^ *"bytes": \([0-9]*\).*/\1/p' plan.json)" \
        -v rate="$(number tokens_per_second train.json)" -v steps="$steps" -v first="$first" \
        -v last="$last" 'BEGIN {
        print "| | |"; print "|---|---|"
        printf "| parameters, all of them trained | %d |\n", parameters
        printf "| state: parameters in 2 bytes, gradients, master weights and moments in 16 | %.1f GiB |\n", 18 * parameters / 2^30
        printf "| memory that the run may take (control group) | %.1f GiB |\n", limit / 2^30
        printf "| state over it | %.1f |\n", 18 * parameters / limit
        printf "| planned | %.2f GiB, and %.1f GiB on disk |\n", planned / 2^30, disk / 2^30
        printf "| measured (anonymous memory) | %.2f GiB |\n", measured / 2^30
        printf "| the most that the group held, the page cache with it | %.2f GiB |\n", held / 2^30
        printf "| tokens/s | %.2f |\n", rate
        printf "| loss, step 1 and step %d | %.4f, %.4f |\n", steps, first, last }'
    echo
    echo "Loss of each step: $(echo $losses | sed 's/ /, /g')."
} >"$out"
cat "$out"
awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < a) }' || { echo "the loss does not fall" >&2; exit 1; }
