#!/bin/bash
# DeBERTa v3 large with the DeepSpeed config that people publish for it: classifier.sh [BUILD]
# Pairs of texts, 3 labels, 256 tokens, 2 ranks, 3 steps after 1, at the model's real shapes with
# random weights. Writes bench/results/classifier.md: memory and seconds a step, planned and
# measured, in fp16, bf16 and fp32, beside transformers and DeepSpeed where PYTHON names an
# interpreter that has them. SIFR_BENCH_TINY=1: a model of a few thousand parameters. Some half an
# hour, 10 GB in .cache/bench. Exit code 1 where a run of sifr fails.
set -eu -o pipefail
cd "$(dirname "$0")/.."
root=$PWD sifr=$(realpath "${1:-build}")/sifr out=${SIFR_BENCH_OUT:-$PWD/bench/results/classifier.md}
work=${SIFR_BENCH_CACHE:-$PWD/.cache/bench}/classifier tiny=${SIFR_BENCH_TINY:-}
mkdir -p "$work"
cat README.md docs/*.md >"$work/text.txt"
cd "$work"

width=1024 inner=4096 layers=24 words=128100
[ -z "$tiny" ] || width=64 inner=128 layers=2 words=1000
cat >config.json <<J
{"model_type": "deberta-v2", "architectures": ["DebertaV2ForMaskedLM"], "vocab_size": $words,
 "hidden_size": $width, "intermediate_size": $inner, "num_hidden_layers": $layers,
 "num_attention_heads": 16, "max_position_embeddings": 512, "type_vocab_size": 0,
 "relative_attention": true, "position_buckets": 256, "max_relative_positions": -1,
 "norm_rel_ebd": "layer_norm", "share_att_key": true, "pos_att_type": "p2c|c2p",
 "position_biased_input": false, "layer_norm_eps": 1e-7, "pooler_dropout": 0,
 "pooler_hidden_act": "gelu", "pooler_hidden_size": $width, "pad_token_id": 0}
J
# The published config, but for the precision.
cat >published.json <<'J'
{"train_batch_size": 16, "gradient_accumulation_steps": 2,
 "optimizer": {"type": "AdamW", "params": {"lr": 5e-5, "weight_decay": 0.1}},
 "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true},
   "overlap_comm": true, "contiguous_gradients": true}}
J
# Pairs that fill 256 tokens.
tr -s ' \t\n' ' ' <text.txt | tr -d '"' | fold -w 900 | awk 'BEGIN {
    split("entailment neutral contradiction", label, " "); print "premise\thypothesis\tlabel" }
    { if (NR % 2) first = $0; else print first "\t" $0 "\t" label[NR / 2 % 3 + 1] }' >pairs.tsv
[ -d tokenizer ] ||
    "$sifr" tokenizer train --type unigram --vocab-size 900 --data text.txt --output tokenizer >log
rm -rf model
"$sifr" init --config config.json --tokenizer tokenizer --output model --seed 1 >log

number() { sed -n "s/^ *\"$1\": \([0-9.e+-]*\).*/\1/p" "$2" | sed -n 1p; }
gib() { awk -v b="$1" 'BEGIN { printf "%.2f GiB", b / 2^30 }'; }
rows=
for type in fp16 bf16 fp32; do
    case $type in fp32) cp published.json ds.json ;; *)
        sed "1s/{/{\"$type\": {\"enabled\": true}, /" published.json >ds.json ;; esac
    "$sifr" plan --config ds.json --model model --task sequence_classification --labels a b c \
        --new-head --seq-length 256 --world-size 2 --json >plan.json
    rm -rf trained
    "$sifr" train --config ds.json --model model --data pairs.tsv --seq-length 256 --max-steps 4 \
        --task sequence_classification --ranks 2 --output trained --json >train.json 2>log ||
        { tail -n 3 log >&2; exit 1; }
    # 16 sequences a step; the first step warms up.
    measured=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "tokens_per_second") at = i; next }
        NR > 2 { sum += 16 * 256 / $at; n++ } END { printf "%.1f", sum / n }' trained/metrics.csv)
    rows="$rows
| sifr, $type | $(gib "$(number peak_bytes plan.json)") | $(gib "$(number measured_bytes train.json)") | $(awk -v s="$(number step_s plan.json)" 'BEGIN { printf "%.1f", s }') s | $measured s |"
done
peer() { # TYPE CONFIG
    local rank status=0 pids= port=$((20000 + RANDOM % 20000))
    for rank in 0 1; do
        RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            DS_ACCELERATOR=cpu "$PYTHON" "$root/bench/peers/classify_deepspeed.py" --model model \
            --config "$2" --precision "$1" >peer$rank.out 2>peer$rank.err &
        pids="$pids $!"
    done
    for rank in $pids; do wait "$rank" || status=1; done
    return $status
}
# What ended a peer: its own words, or a kill, which is the system's for want of memory.
reason() {
    local text
    text=$(sed -nE 's/^(\[rank0\]: )?([A-Za-z.]*(Error|Exception): .*)/\2/p' peer?.err | tail -n 1 | cut -c1-120)
    echo "${text:-killed: out of memory}"
}
if [ -n "${PYTHON:-}" ]; then
    # DeepSpeed's default buckets are 2 GB each in fp32.
    sed 's/"contiguous_gradients": true/&, "reduce_bucket_size": 5e7, "sub_group_size": 1e8/' \
        published.json >small.json
    for type in fp16 bf16 fp32; do
        for config in published.json small.json; do
            name="transformers + DeepSpeed, $type"
            [ $config = published.json ] || name="$name, small buckets"
            if peer $type $config; then
                rows="$rows
$(tail -n 1 peer0.out | awk -v name="$name" '{
    match($0, /"seconds": \[[^]]*/); n = split(substr($0, RSTART + 12, RLENGTH - 12), s, ", ")
    for (i = 1; i <= n; i++) sum += s[i]
    match($0, /"bytes": [0-9]+/); b = substr($0, RSTART + 9, RLENGTH - 9)
    printf "| %s | | %.2f GiB | | %.1f s |", name, b / 2^30, sum / n }')"
                break
            fi
            rows="$rows
| $name | | | | $(reason) |"
            case $(reason) in *"not supported"*) break ;; esac
        done
    done
fi
{
    echo '# DeBERTa v3 large with a published DeepSpeed config, by `bench/classifier.sh`'
    echo
    echo "$(date -u +'%Y-%m-%d %H:%M UTC'), commit $(git -C "$root" rev-parse --short=12 HEAD), $("$sifr" --version | sed -n 1p);"
    echo "$(sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo), $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg) at the end."
    echo
    echo "$(sed -n 's/^  "parameters": \([0-9]*\).*/\1/p' plan.json) parameters, pairs of texts, 3 labels, 2 ranks x 2 micro batches x 4 sequences of 256 tokens,"
    echo 'ZeRO 3, optimizer state on the host. Memory is a rank'"'"'s; of DeepSpeed it is its resident set.'
    echo
    echo '| | memory planned | measured | a step planned | measured |'
    echo "|---|---|---|---|---|$rows"
} >"$out"
cat "$out"
