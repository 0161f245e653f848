#!/bin/sh
# Trains small models with a program, in the folder that it is in: small-run.sh SIFR. Prints a line
# for each run: what, and the SHA-256 of the trained weights. What packs, builds or installs sifr
# elsewhere runs it (scripts/release.sh, scripts/make-portable.sh, the Debian package): on the same
# machine the same lines say that two programs compute the same bits. RANKS=N: on so many ranks, which
# are the same bits, too. PYTHON=COMMAND: by the package sifr of that Python; the program makes the models.
set -eu
sifr=$(command -v "$1") || { echo "small-run.sh: there is no program $1" >&2; exit 2; }
case $sifr in
/*) ;;
*) sifr=$PWD/$sifr ;;
esac
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-small.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work"
awk 'BEGIN { for (i = 0; i < 400; i++) print "good bad food was were day the a very " i % 7 }' >text
cat >llama.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 280,
 "hidden_size": 64, "intermediate_size": 176, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": false}
J
cat >gpt2.json <<'J'
{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 280, "n_embd": 64,
 "n_layer": 2, "n_head": 4, "n_positions": 64}
J
quietly() { "$@" >log 2>&1 || { cat log >&2; echo "small-run.sh: $*: failed" >&2; exit 1; }; }
quietly "$sifr" tokenizer train --vocab-size 280 --data text --output tokenizer
train() { # MODEL SET
    if [ "${PYTHON:-}" ]; then
        # shellcheck disable=SC2086 # words
        quietly $PYTHON -c 'import sys, sifr
sifr.train("ds.json", model=sys.argv[1], isa=sys.argv[2], data=["text"], threads=2, output="trained")' "$@"
    else
        quietly "$sifr" train --config ds.json --model "$1" --isa "$2" --data text --threads 2 \
            ${RANKS:+--ranks "$RANKS"} --output trained
    fi
}
kernels=plain
for set in avx2 avx512f:avx512 avx512_bf16; do
    ! "$sifr" doctor | grep -q "^instructions.*${set%:*} yes" || kernels="$kernels ${set#*:}"
done
for model in llama gpt2; do
    quietly "$sifr" init --config $model.json --tokenizer tokenizer --output $model --seed 3
    for precision in fp32 bf16; do
        bf16=false
        [ $precision = fp32 ] || bf16=true
        cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": $bf16},
 "gradient_clipping": 1.0, "zero_optimization": {"stage": 1},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}}, "sifr": {"seq_length": 64, "max_steps": 4}}
J
        for set in $kernels; do
            train $model "$set"
            echo "$model $precision $set $(sha256sum <trained/model.safetensors | cut -d ' ' -f 1)"
            rm -r trained
        done
    done
done
quietly "$sifr" generate --model llama --prompt 'good bad' --max-new-tokens 4
