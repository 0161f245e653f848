#!/bin/bash
# The loss curves of docs/zeropp.md: zeropp_curve.sh [BUILD]
# Trains a small Llama for 300 steps at stage 3 with gathers as they are and with gathers in 8 bits,
# with gradients in 4 bits, and with both, in fp32 and bf16 (about four minutes on two cores), and
# puts the losses between that page's markers.
set -eu -o pipefail
cd "$(dirname "$0")/.."
tree=$PWD
sifr=$PWD/${1:-build}/sifr
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-curve.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat README.md $(find src -name '*.c' | sort) >"$work/text"
cd "$work"

cat >config.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 1024,
 "hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4,
 "intermediate_size": 352, "max_position_embeddings": 128, "tie_word_embeddings": false}
J
"$sifr" tokenizer train --vocab-size 1024 --data text --output tokenizer >log
"$sifr" tokenize --tokenizer tokenizer --data text --output store >log
"$sifr" init --config config.json --tokenizer tokenizer --output model --seed 1 >log

run() { # NAME PRECISION QUANTISED RANKS [MORE OF zero_optimization]
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,
 "bf16": {"enabled": $([ "$2" = bf16 ] && echo true || echo false)},
 "optimizer": {"type": "AdamW", "params": {"lr": 5e-4}},
 "zero_optimization": {"stage": 3, "zero_quantized_weights": $3${5:-}},
 "sifr": {"seq_length": 128, "max_steps": 300, "logging_steps": 1, "threads": 1}}
J
    "$sifr" train --config ds.json --model model --data store --output "$1" --ranks "$4" >log 2>&1 ||
        { tail log >&2; exit 1; }
}
mean() { # NAME FIRST LAST: of the losses of these steps
    awk -F, -v from="$2" -v to="$3" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "loss") c = i }
        NR > 1 && $1 >= from && $1 <= to { sum += $c; n++ } END { printf "%.4f", sum / n }' \
        "$1/metrics.csv"
}
for precision in fp32 bf16; do
    run $precision $precision false 2
    run $precision-8 $precision true 2
    run $precision-alone $precision true 1
    cmp -s $precision-8/model.safetensors $precision-alone/model.safetensors ||
        { echo "$precision: other bits on one rank than on two" >&2; exit 1; }
    run $precision-4 $precision false 2 ', "zero_quantized_gradients": true'
    run $precision-both $precision true 2 ', "zero_quantized_gradients": true'
done
{
    echo '| steps, mean loss | fp32 | fp32, 4 bits | with gathers in 8 | bf16 | bf16, 4 bits | with gathers in 8 |'
    echo '|---|---|---|---|---|---|---|'
    for range in "1 1" "2 50" "51 100" "101 150" "151 200" "201 250" "251 300"; do
        set -- $range
        row="| $1$([ "$1" = "$2" ] || echo " to $2")"
        for name in fp32 fp32-4 fp32-both bf16 bf16-4 bf16-both; do
            row="$row | $(mean $name $range)"
        done
        echo "$row |"
    done
} | "$tree/scripts/page-part.sh" "$tree/docs/zeropp.md" sums
{
    echo '| steps, mean loss | fp32 | fp32, 8 bits | bf16 | bf16, 8 bits |'
    echo '|---|---|---|---|---|'
    for range in "1 1" "2 50" "51 100" "101 150" "151 200" "201 250" "251 300"; do
        set -- $range
        echo "| $1$([ "$1" = "$2" ] || echo " to $2") | $(mean fp32 $range) | $(mean fp32-8 $range) | $(mean bf16 $range) | $(mean bf16-8 $range) |"
    done
} | "$tree/scripts/page-part.sh" "$tree/docs/zeropp.md" curve
