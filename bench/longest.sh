#!/bin/bash
# The longest sequence that trains in some memory: longest.sh [BUILD [MEMORY [SHAPE [run]]]]
# Asks the plan for a Llama (SHAPE: 134M, 12 layers of hidden 768, or tiny, for trying this out) in
# MEMORY (4GiB), bf16, one rank and sequence: everything kept, units' inputs alone, those with tiles,
# and with all on disk that can be. With `run` it then trains one step of the longest that needs no
# disk, with data memory limited to MEMORY and 5 % (RLIMIT_DATA, which counts what is mapped), and
# says what was planned and what measured: for 134M an hour on two cores, most of it attention.
set -eu -o pipefail
cd "$(dirname "$0")/.."
sifr=$(realpath "${1:-build}")/sifr
memory=${2:-4GiB} shape=${3:-134M} run=${4:-}
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-longest.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat README.md docs/*.md $(find src -name '*.c' | sort) >"$work/text"
cd "$work"

case $shape in
134M) sizes='"vocab_size": 32000, "hidden_size": 768, "num_hidden_layers": 12,
 "num_attention_heads": 12, "intermediate_size": 2048' ;;
tiny) sizes='"vocab_size": 1024, "hidden_size": 128, "num_hidden_layers": 4,
 "num_attention_heads": 2, "intermediate_size": 384' ;;
*) echo "longest.sh: shape $shape: 134M or tiny" >&2; exit 2 ;;
esac
mkdir model
cat >model/config.json <<J
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], $sizes, "eos_token_id": 0,
 "bos_token_id": 0, "max_position_embeddings": 16777216, "tie_word_embeddings": false}
J

flags() { # LENGTH RECOMPUTE TILE
    echo "--bf16 --per-device-train-batch-size 1 --gradient-accumulation-steps 1 --threads 2" \
        "--seq-length $1 --recompute $2 --tile-tokens $3"
}
cat >disk.json <<J
{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "$work"},
  "offload_param": {"device": "nvme", "nvme_path": "$work"}},
 "sifr": {"offload_gradients": "nvme", "offload_activations": "nvme"}}
J
longest() { # RECOMPUTE TILE [OPTION...]
    "$sifr" plan --model model --device-memory "$memory" $(flags 4096 "$1" "$2") "${@:3}" |
        sed -n 's/^seq_length *\([0-9,]*\) fits.*/\1/p' | tr -d ,
}
row() { # LENGTH RECOMPUTE TILE DISK
    [ -n "$1" ] || { echo "longest.sh: nothing fits in $memory" >&2; exit 1; }
    echo "| $2 | $3 | $4 | $1 |"
}
echo "| recompute | tile_tokens | on disk | longest sequence in $memory |"
echo "|---|---|---|---|"
row "$(longest unit 1024 --config disk.json)" unit 1024 "state, gradients, parameters, activations"
for setting in "none 0" "unit 0" "unit 4096" "unit 1024"; do
    length=$(longest $setting)
    row "$length" $setting nothing
done
[ "$run" = run ] || exit 0

number() { sed -n "s/^  \"$1\": \([0-9]*\).*/\1/p" "$2" | sed -n 1p; }
"$sifr" tokenizer train --vocab-size 1024 --data text --output tokenizer >log
"$sifr" init --config model/config.json --tokenizer tokenizer --output folder >log
while [ "$(wc -c <text)" -lt $((length * 16)) ]; do cat text text >more && mv more text; done
# 5 % more, and room for what counts as data without being touched: stacks of threads, arenas.
bytes=$(numfmt --from=iec-i "${memory%B}")
ulimit -d $((bytes / 1024 * 21 / 20 + (64 << 10)))
begun=$SECONDS
"$sifr" train --model folder --data text --output out $(flags "$length" unit 1024) --max-steps 1 \
    --json >train.json 2>log || { cat log >&2; exit 1; }
echo "one step of $length tokens in $((SECONDS - begun)) s:" \
    "planned $(number planned_bytes train.json), measured $(number measured_bytes train.json)"
