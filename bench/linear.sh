#!/bin/bash
# A step of four layers of Qwen3.5 0.8B, three with linear attention and one with full attention, with
# 32,768 words and random weights: linear.sh [BUILD] [WAY ...]. 1 x 2,048 tokens in bf16, one thread.
# Ways: sifr (bench_train), plain (PyTorch), apart and whole (its layers compiled: train_torch.py);
# without any all. Each prints its seconds and losses, and PyTorch's compiled ones a median. PYTHON
# names an interpreter that has torch and transformers; STEPS: steps after the first one (5).
# Compiling takes minutes, and is kept in .cache/bench/linear: STEPS=1 linear.sh BUILD apart whole
# fills it before a run on a quiet machine.
set -eu -o pipefail
cd "$(dirname "$0")/.."
root=$PWD build=$(realpath "${1:-build}") work=${SIFR_BENCH_CACHE:-$PWD/.cache/bench}/linear
shift || true
steps=${STEPS:-5} python=${PYTHON:-python3} length=2048
mkdir -p "$work"
cd "$work"
cat >config.json <<'J'
{"model_type": "qwen3_5_text", "architectures": ["Qwen3_5ForCausalLM"], "vocab_size": 32768,
 "hidden_size": 1024, "intermediate_size": 3584, "num_hidden_layers": 4, "num_attention_heads": 8,
 "num_key_value_heads": 2, "head_dim": 256, "max_position_embeddings": 262144,
 "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"],
 "linear_num_key_heads": 16, "linear_num_value_heads": 16, "linear_key_head_dim": 128,
 "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "rms_norm_eps": 1e-06,
 "tie_word_embeddings": true, "rope_parameters": {"rope_type": "default", "rope_theta": 10000000,
 "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10], "mrope_interleaved": true}}
J
if [ ! -d model ]; then
    cat "$root"/README.md "$root"/docs/*.md >text.txt
    rm -rf tokenizer
    "$build/sifr" tokenizer train --vocab-size 900 --data text.txt --output tokenizer >log
    "$build/sifr" init --config config.json --tokenizer tokenizer --output model --seed 1 >log
fi
"$python" - "$((length * (steps + 1)))" >/dev/null <<'P'
import array
import random
import sys

numbers = random.Random(1)
with open("batches.bin", "wb") as f:
    array.array("i", (int(32768 * numbers.random() ** 3) for _ in range(int(sys.argv[1])))).tofile(f)
P

export TORCHINDUCTOR_CACHE_DIR=$work/compiled TORCHINDUCTOR_FX_GRAPH_CACHE=1 OMP_NUM_THREADS=1
for way in "${@:-sifr plain apart whole}"; do
    for one in $way; do
        more="--compile-layers $one"
        [ "$one" != plain ] || more=
        echo "$one:"
        if [ "$one" = sifr ]; then
            "$build/bench_train" model bf16 "$steps" --threads 1 --sequences 1 --length $length \
                --batches batches.bin | tr -d '\n' |
                grep -oE '"(seconds|losses)": \[[^]]*\]' | tail -n 2
        else
            "$python" "$root/bench/peers/train_torch.py" --model model --batches batches.bin \
                --sequences 1 --length $length --steps "$steps" --seconds 3600 --threads 1 $more |
                grep . | tail -n 2
        fi
    done
done
