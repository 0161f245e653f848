#!/bin/bash
# What sifr.tp_exact costs on one rank: exact.sh [BUILD [PIECES [STEPS]]]
# Steps of Llamas of two blocks, with and without it by turns on the same batch (bench_train
# --beside), on each instruction set that the processor has. A line for each: the median seconds of
# both, their quotient's median, and that of processor time, which other work disturbs less and which
# docs/tensor.md has. Shapes of h >= 2,048 and 512 tokens or more are judged (5 %, and 2 % is the
# goal); the others are printed. A quarter of an hour on two quiet cores.
set -eu -o pipefail
cd "$(dirname "$0")/.."
build=$PWD/${1:-build} pieces=${2:-8} steps=${3:-5}
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-exact.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
awk 'BEGIN { for (i = 0; i < 2000; i++) print "a line of text, number " i * 7919 % 10007 "." }' >text
"$build/sifr" tokenizer train --vocab-size 512 --data text --output tokenizer >log
model() { # NAME HIDDEN MLP HEADS KV
    cat >config.json <<J
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 1024,
 "hidden_size": $2, "intermediate_size": $3, "num_hidden_layers": 2, "num_attention_heads": $4,
 "num_key_value_heads": $5, "max_position_embeddings": 4096, "tie_word_embeddings": false}
J
    "$build/sifr" init --config config.json --tokenizer tokenizer --output "$1" --seed 1 >log
}
model 768 768 2048 16 8
model 2048 2048 5632 32 8
model 2048-1B 2048 8192 32 8
echo "| h, MLP | tokens | instruction set | type | without, s | with, s | quotient | of processor time |"
echo "|---|---|---|---|---|---|---|---|"
# The last two lists of that name in out, of the run without and of the one with; the first step does
# not count. "MEDIAN MEDIAN MEDIAN-OF-QUOTIENTS"
medians() {
    tr -d '\n' <out | grep -o "\"$1\": \[[^]]*\]" | tail -n 2 | sed 's/.*\[//; s/\]//' |
        awk -F', *' '
        function median(v, n,   i, j, t) {
            for (i = 2; i <= n; i++)
                for (j = i; j > 1 && v[j - 1] > v[j]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
            return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
        }
        { n = NF - 1; for (i = 1; i <= n; i++) s[NR, i] = $(i + 1) }
        END { for (i = 1; i <= n; i++) { a[i] = s[1, i]; b[i] = s[2, i]; q[i] = b[i] / a[i] }
              printf "%.3f %.3f %.3f\n", median(a, n), median(b, n), median(q, n) }'
}
pair() { # MODEL NAME TOKENS ISA TYPE
    "$build/bench_train" "$1" "$5" "$steps" --threads 2 --sequences 1 --length "$3" --isa "$4" \
        --beside 0 --exact "$pieces" >out 2>err || {
        echo "| $2 | $3 | $4 | $5 | not here: $(tail -n 1 err) | | | |"
        return 0
    }
    set -- "$2" "$3" "$4" "$5" $(medians seconds) $(medians processor_seconds)
    echo "| $1 | $2 | $3 | $4 | $5 | $6 | $7 | ${10} |"
}
for isa in avx2 avx512 avx512_bf16; do
    for type in fp32 bf16; do
        [ "$isa $type" = "avx512_bf16 fp32" ] && continue
        [ "$isa $type" = "avx512 bf16" ] && continue
        pair 768 "768, 2048" 512 $isa $type
        pair 2048 "2048, 5632" 512 $isa $type
        pair 2048 "2048, 5632" 2048 $isa $type
        pair 2048-1B "2048, 8192" 1024 $isa $type
    done
done
