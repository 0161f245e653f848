#!/bin/bash
# A table of steps over slow links: links.sh [BUILD]
# It goes between the markers "links" of docs/zeropp.md as well, once that page has them.
# Trains a small Llama at stage 3 on two hosts of two ranks each, which are network namespaces whose
# link a token bucket (tc) holds to 1 Gbit/s and to 100 Mbit/s: as it is, and with ZeRO++'s parts.
# Beside each measured step, the median of five, stands the predicted one, for a machine whose links
# `sifr bench comm` has measured on these hosts, and whose computing is scaled so that the same step
# of four ranks on one host, which is measured just before, is predicted right. Takes some minutes on
# two cores. Skipped where the kernel has no token bucket, or this is not root. The machine must be
# quiet: four ranks share its cores, and what else runs shows in each figure. A line of `rows` is a
# row of the table.
set -eu -o pipefail
if [ ! "${LINKS:-}" ]; then
    export SOURCE=$(cd "$(dirname "$0")/.." && pwd)
    export BUILD=$SOURCE/${1:-build} LINKS=$(mktemp -d "${TMPDIR:-/tmp}/sifr-links.XXXXXX")
    export SIFR=$BUILD/sifr
    cd "$LINKS"
    code=0
    bash -eu "$SOURCE/bench/links.sh" || code=$?
    page=$SOURCE/docs/zeropp.md
    if [ -s table ] && [ $code = 0 ] && grep -q '<!-- links: begin' "$page"; then
        "$SOURCE/scripts/page-part.sh" "$page" links <table
    fi
    cd /
    rm -rf "$LINKS"
    exit $code
fi
. "$SOURCE/tests/support/ranks.sh"
. "$SOURCE/tests/support/namespaces.sh"
hosts 2
limit() { # RATE
    local i
    for i in 1 2; do
        ip netns exec h$i tc qdisc replace dev eth0 root tbf rate "$1" burst 64kb latency 100ms \
            2>/dev/null || return 1
    done
}
if ! limit 1gbit; then
    echo "skipped: 1 table: the kernel has no token bucket (tc … tbf)"
    exit 77
fi

hpz='"zero_hpz_partition_size": 2'
qwz='"zero_quantized_weights": true'
qgz='"zero_quantized_gradients": true'
power() { # RANK: keys after those of zero_optimization
    echo "}, \"compression\": {\"type\": \"powerSGD\", \"params\":" \
        "{\"matrix_approximation_rank\": $1, \"start_compressing_after_step\": 2}"
}
rows=(
    "as it is|"
    "hpZ|, $hpz"
    "qwZ and qgZ|, $qwz, $qgz"
    "all three|, $hpz, $qwz, $qgz"
    "PowerSGD, rank 1|$(power 1)"
    "PowerSGD, rank 2|$(power 2)"
    "PowerSGD, rank 4|$(power 4)"
    "two tensor ranks a host|}, \"tensor_parallel\": {\"size\": 2"
)

cat "$SOURCE"/README.md "$SOURCE"/docs/*.md >words
cat >shape.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 1024,
 "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4,
 "intermediate_size": 704, "max_position_embeddings": 128, "tie_word_embeddings": false}
J
"$SIFR" tokenizer train --vocab-size 1024 --data words --output tokenizer >out 2>err
"$SIFR" init --config shape.json --tokenizer tokenizer --output model --seed 1 >out 2>err
for i in 1 2; do echo "h$i slots=2"; done >hostfile
settings() { # KEYS
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 5e-4}},
 "zero_optimization": {"stage": 3$1},
 "sifr": {"seq_length": 128, "max_steps": 7, "logging_steps": 1, "threads": 1,
          "step_order": "unit"}}
J
}
# The median of the last five steps of the run in `run`.
median() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "seconds") c = i; next }
        { if (NR > 3) print $c - last; last = $c }' run/metrics.csv | sort -n | sed -n 3p
}
number() { sed -n "s/^ *\"$1\": \([0-9.e+-]*\),*$/\1/p" | sed -n 1p; } # KEY: of JSON
train() { # OPTION…
    rm -rf run
    on h1 "$SIFR" train --config ds.json --model model --data words --output run --json "$@" \
        >out 2>err || fail "exit code $?"
}
plan() { # MACHINE: the predicted step
    "$SIFR" plan --config ds.json --model model --world-size 4 --ranks-per-host 2 --machine "$1" \
        --json >plan 2>err || fail "plan: exit code $?"
    number step_s <plan
}
machine() { # OPERATIONS MEMORY HOST NETWORK: files of links, whose figures are taken
    local latency bytes
    latency=$(number host_latency_s <"$3") bytes=$(number host_bytes_per_s <"$3")
    echo "{\"fp32_operations_per_s\": $1, \"memory_bytes_per_s\": $2, \"ranks_per_host\": 2,"
    echo " \"host_latency_s\": $latency, \"host_bytes_per_s\": $bytes,"
    latency=$(number network_latency_s <"$4") bytes=$(number network_bytes_per_s <"$4")
    echo " \"network_latency_s\": $latency, \"network_bytes_per_s\": $bytes}"
}

settings ""
on h1 "$SIFR" bench comm --ranks 4 --max-bytes 4MiB --output host.json >out 2>err || fail "bench comm"
cat >fast.json <<'J'
{"fp32_operations_per_s": 4e10, "memory_bytes_per_s": 4e9, "host_latency_s": 1e-6,
 "host_bytes_per_s": 1e12, "network_latency_s": 1e-6, "network_bytes_per_s": 1e12}
J
# How much slower than fast.json a step of four ranks on this host alone is.
share() {
    train --ranks 4
    awk -v have="$(median)" -v want="$(plan fast.json)" 'BEGIN { print want / have }'
}
of_share() { awk -v s="$1" -v of="$2" 'BEGIN { printf "%.4g", of * s }'; }

{
    echo '| | from other hosts, a rank | 1 Gbit/s: predicted | measured | 100 Mbit/s: predicted | measured |'
    echo '|---|---|---|---|---|---|'
} >table
declare -a cells crossing
for rate in 1gbit 100mbit; do
    limit $rate
    on h1 "$SIFR" bench comm --hostfile hostfile --max-bytes 8MiB --output link.json >out 2>err ||
        fail "bench comm at $rate: exit code $?"
    sed -n 's/^a call takes/'$rate': a call takes/p' out >&2
    for i in "${!rows[@]}"; do
        settings "${rows[$i]#*|}"
        slower=$(share)
        machine "$(of_share "$slower" 4e10)" "$(of_share "$slower" 4e9)" host.json link.json \
            >machine.json
        predicted=$(plan machine.json)
        before=$(received h1) start=$(date +%s.%N)
        train --hostfile hostfile
        measured=$(median)
        # The link's counter: no more came than the rate lets through.
        awk -v bytes=$(($(received h1) - before)) -v rate=$rate -v start="$start" \
            -v end="$(date +%s.%N)" 'BEGIN {
                most = rate == "1gbit" ? 125e6 : 12.5e6
                exit !(bytes <= most * (end - start) * 1.05 + 1e6) }' ||
            fail "$rate: more came over the link than its rate"
        crossing[$i]=$(number crossing_bytes <plan)
        cells[$i]="${cells[$i]:-} $(printf '%.3f s | %.3f s' "$predicted" "$measured") |"
        echo "$rate, ${rows[$i]%%|*}: predicted $predicted s, measured $measured s" >&2
    done
done
for i in "${!rows[@]}"; do
    echo "| ${rows[$i]%%|*} | $(awk -v b="${crossing[$i]}" 'BEGIN { printf "%.2f MB", b / 1e6 }') |${cells[$i]}" >>table
done
cat table
