# label: full
# bench/peers/train_gpu_torch.py in small on a CPU, where a python3 has torch: what it prints, and
# that it ends in time.
# not under sanitizers
. "$SOURCE/tests/support/expect.sh"
for python in python3 "$SOURCE/.cache/bench/venv/bin/python3" none; do
    "$python" -c 'import torch' 2>/dev/null && break
done
[ "$python" != none ] || { echo "skipped: no python3 with torch"; exit 77; }
export OMP_NUM_THREADS=1
cat >gpt2.json <<'J'
{"model_type": "gpt2", "vocab_size": 311, "n_embd": 64, "n_layer": 2, "n_head": 4}
J
cat >llama.json <<'J'
{"model_type": "llama", "vocab_size": 280, "hidden_size": 48, "intermediate_size": 104,
 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
J
peer() { # CODE OPTION…
    local code=$1
    shift
    expect "$code" "$python" "$SOURCE/bench/peers/train_gpu_torch.py" --device cpu --length 32 "$@"
}
says() { grep -qE -- "$1" out err || { cat out err; fail "no '$1'"; }; }

for model in gpt2 llama; do
    peer 0 --config $model.json --sequences 4 --steps 6
    says '^steps 4 of 4, 4 x 32 tokens$' # the first two do not count
    says '^tokens_per_second [0-9.]+$'
    says '^peak_memory_gb [0-9.]+$'
done
says '^torch .*, loss 5\.[0-9]+$' # that of small random weights
peer 0 --config gpt2.json --sequences 4 --steps 1000000000 --seconds 20
says '^no more steps within 20 s$'
says '^tokens_per_second [0-9.]+$'
peer 1 --config gpt2.json --sequences 4 --steps 1000000000 --seconds 0
says 'no step was measured within 0 s'
peer 2 --config gpt2.json --steps 2
