#!/bin/sh
# `make demo`: plain text to a small trained model, in a few minutes: demo.sh [BUILD]
# DEMO_STEPS chooses another number of steps than the config's. Everything is made below BUILD/demo. What a second run would make again from the same inputs (the
# text, the tokenizer, the token store, the first weights) is kept and used.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
sifr=$build/sifr
work=$build/demo
config=examples/ds_config_demo.json
model=examples/model_demo.json
vocabulary=$(sed -n 's/.*"vocab_size": *\([0-9]*\).*/\1/p' "$model")
began=$(date +%s)
mkdir -p "$work"

say() { printf '\n== %s\n' "$*"; }
show() { printf '$ %s\n' "$*"; "$@"; }

# fresh NAME INPUT…: true where the inputs' contents are those that NAME was made from.
fresh() {
    name=$1
    shift
    key=$(cat "$@" | cksum)
    [ -e "$work/$name" ] && [ "$(cat "$work/$name.from" 2>/dev/null)" = "$key" ]
}
# made NAME INPUT…: notes that NAME is complete.
made() {
    name=$1
    shift
    cat "$@" | cksum >"$work/$name.from"
}

if ! fresh text scripts/demo-text.sh; then
    say "Text: the King James Bible, from Debian's package bible-kjv"
    scripts/demo-text.sh "$work/text"
    made text scripts/demo-text.sh
fi

if ! fresh tokenizer "$sifr" "$work/text.from" "$model"; then
    say "Tokenizer: byte-level BPE with $vocabulary tokens, from the text"
    rm -rf "$work/tokenizer"
    show "$sifr" tokenizer train --vocab-size "$vocabulary" --data "$work/text/train" \
        --output "$work/tokenizer"
    made tokenizer "$sifr" "$work/text.from" "$model"
fi

if ! fresh tokens.idx "$work/tokenizer.from"; then
    say "Token store: the text as ids"
    rm -f "$work"/tokens.bin "$work"/tokens.idx
    show "$sifr" tokenize --tokenizer "$work/tokenizer" --data "$work/text/train" \
        --output "$work/tokens"
    made tokens.idx "$work/tokenizer.from"
fi

if ! fresh model "$work/tokenizer.from" "$model"; then
    say "Model: a small Llama with random weights"
    rm -rf "$work/model"
    show "$sifr" init --config "$model" --tokenizer "$work/tokenizer" --output "$work/model" --seed 1
    made model "$work/tokenizer.from" "$model"
fi

say "Training, on two ranks with ZeRO stage 3"
rm -rf "$work/run"
show "$sifr" train --config "$config" --model "$work/model" --data "$work/tokens" --ranks 2 \
    --eval-data "$work/text/held-out" --output "$work/run" ${DEMO_STEPS:+--max-steps "$DEMO_STEPS"}

say "The loss, step by step"
scripts/loss-curve.sh "$work/run/metrics.jsonl"

say "Evaluation on chapters that it has never seen"
show "$sifr" eval --model "$work/run" --data "$work/text/held-out" --seq-length 256

say "A sample"
show "$sifr" generate --model "$work/run" --prompt "And it came to pass" --max-new-tokens 120 \
    --temperature 0.8 --top-p 0.95 --seed 1
printf '\n\n%d seconds in all. The trained model is in %s; try another prompt:\n  %s\n' \
    $(($(date +%s) - began)) "$work/run" \
    "$sifr generate --model $work/run --prompt 'In the beginning'"
