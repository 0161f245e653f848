# label: full
# Training on a GPU, which a fake driver plays, as a user runs it: a run, the same run in two parts,
# from the GPU to the CPU and back, evaluation within it, and what is said.
# SIFR_GPU_SHORT: the first run alone, of two steps. SIFR_GPU_SAY: a file for the last run's JSON.
# timeout: 600, not under sanitizers
. "$SOURCE/tests/support/expect.sh"
gpu_program=${SIFR_GPU_PROGRAM:-$BUILD/tests/sifr_on_fake_gpu}
gpu() { "$gpu_program" "$@"; }
says() { grep -qE -- "$1" out err || { cat out err; fail "no '$1'"; }; }

awk 'BEGIN { for (i = 0; i < 400; i++) print "good bad food was were day the a very red big one two" }' >text
head -n 30 text >held-out
"$SIFR" tokenizer train --vocab-size 280 --data text --output tok >/dev/null 2>&1
cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 280,
 "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": false}
J
"$SIFR" init --config tiny.json --tokenizer tok --output model --seed 3 >/dev/null
cat >ds.json <<'J'
{"train_batch_size": 4, "gradient_accumulation_steps": 2, "bf16": {"enabled": true},
 "gradient_clipping": 1.0, "zero_optimization": {"stage": 2},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}}, "sifr": {"step_order": "batch"}}
J
run() { # PROGRAM OUTPUT STEPS OPTION…
    local program=$1 output=$2 steps=${SIFR_GPU_SHORT:+2}
    : "${steps:=$3}"
    shift 3
    expect 0 $program train --config ds.json --model model --data text --eval-data held-out \
        --seq-length 32 --max-steps "$steps" --threads 1 --output "$output" --save-steps 3 \
        --eval-steps "$steps" --json "$@"
    [ ! "${SIFR_GPU_SAY:-}" ] || cp out "$SIFR_GPU_SAY"
}
loss() { sed -n 's/^  "loss": \([0-9.]*\),$/\1/p' out; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a - b < 0.02 && b - a < 0.02) }'; }

run "$SIFR" on-cpu 6 --device cpu
cpu=$(loss)
run gpu on-gpu 6
says 'sm_[0-9]+'
whole=$(loss)
near "$cpu" "$whole" || fail "loss $cpu on the CPU, $whole on the GPU"
says 'eval loss'

# The trained model by itself, beside the CPU.
evaluate() { # PROGRAM DEVICE: its loss
    expect 0 "$1" eval --model on-gpu --data text --seq-length 32 --threads 1 --max-windows 8 \
        --device "$2" --json
    grep -q "\"device\": \"$2\"" out || { cat out; fail "not on $2"; }
    sed -n 's/^ *"loss": \([0-9.]*\),$/\1/p' out
}
alone=$(evaluate gpu cuda)
near "$alone" "$(evaluate "$SIFR" cpu)" || fail "eval: loss $alone on the GPU"
[ ! "${SIFR_GPU_SHORT:-}" ] || exit 0

# The second half again, on the same kind: the same bits.
cp -r on-gpu again
rm -rf again/checkpoint-6 again/model.safetensors
echo checkpoint-3 >again/latest
run gpu again 6 --resume
cmp on-gpu/model.safetensors again/model.safetensors || fail "a run in two parts has other bits"

# On the other kind: said, and close.
cp -r on-gpu moved
rm -rf moved/checkpoint-6 moved/model.safetensors
echo checkpoint-3 >moved/latest
run "$SIFR" moved 6 --resume --device cpu
says 'checkpoint-3 was made with machine "cuda 9\.0.* continuing, but results will differ'
near "$whole" "$(loss)" || fail "loss $whole, then $(loss) after moving to the CPU"

# State on the host: the same bits. Text comes from the CPU.
sed 's/"stage": 2/"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}/' \
    ds.json >off.json
mv off.json ds.json
run gpu offloaded 6 --trace t.json
! grep "no effect" out err || fail "stage 3 puts parameters into host memory"
picture() { # TRACKS: "disk reads" …
    "$BUILD/trace_picture" t.json >drawn || fail "the trace is not drawn"
    for track in "$@"; do
        grep -q "^rank 0 *$track *|.*[iw]" drawn || { cat drawn; fail "no $track in the picture"; }
    done
}
# A copy's own times: those of its queue, which begin after its start and end before its wait does.
[ ! -x "$BUILD/trace_picture" ] || picture "copies in" "copies out"
awk '
function value(key) { return match($0, "\"" key "\":[0-9.e+-]*") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : -1 }
function named() { match($0, /"name":"[^"]*"/); return substr($0, RSTART + 8, RLENGTH - 9) " " value("step") }
/"name":"start (read|write) / { starts[value("step") " " value("instruction")] = value("ts"); n++ }
/"tid":(3|7),.*"ph":"X"|"ph":"X",.*"tid":(3|7),/ {
    key = value("step") " " value("instruction")
    copies++
    if (!(key in starts) || value("ts") < starts[key] || value("dur") <= 0) wrong++
}
END { printf "%d copies of %d starts, %d wrong\n", copies, n, wrong; exit !(n > 20 && copies == n && !wrong) }
' t.json || fail "the trace of copies"
cmp on-gpu/model.safetensors offloaded/model.safetensors || fail "offloaded: other bits"

# State on disk: the same bits, and nothing is left there. A directory that is missing: one line.
mkdir disk
cp ds.json host.json
sed 's/{"device": "cpu"}/{"device": "nvme", "nvme_path": "disk"}/g; s/"step_order"/"offload_activations": "nvme", &/' \
    host.json >ds.json
run gpu from-disk 6 --trace t.json
[ ! -x "$BUILD/trace_picture" ] || picture "disk reads" "disk writes"
says 'in disk, by (io_uring|plain reads)'
cmp on-gpu/model.safetensors from-disk/model.safetensors || fail "on disk: other bits"
[ -z "$(ls disk)" ] || fail "left on disk: $(ls disk)"
rmdir disk
expect 2 gpu train --config ds.json --model model --data text --seq-length 32 --max-steps 1 \
    --threads 1 --output no-disk
[ "$(grep -c . err)" = 1 ] && says 'disk: ' || fail "no directory: not one line"
mv host.json ds.json

expect 0 gpu generate --model on-gpu --prompt "good bad" --max-new-tokens 4

# Every kernel finished before the next.
SIFR_DEVICE_CHECK=1 run gpu checked 6
cmp on-gpu/model.safetensors checked/model.safetensors || fail "checked: other bits"

# Products by sifr's own kernels: asked for, or, said once, where there is no cuBLASLt.
# A word that is neither is refused.
SIFR_CUDA_PRODUCTS=own run gpu own 6
near "$whole" "$(loss)" || fail "loss $whole with cuBLASLt, $(loss) with own products"
! cat out err | grep -q "own kernels" || fail "own products were asked for, and are warned of"
refused() { # CODE WORDS PRODUCTS
    SIFR_CUDA_PRODUCTS=$3 expect "$1" gpu train --config ds.json --model model --data text \
        --seq-length 32 --max-steps 1 --threads 1 --output refused --device "${4:-cuda}"
    says "$2"
}
refused 2 "SIFR_CUDA_PRODUCTS=fast: it is own .* or cublaslt" fast
refused 2 "SIFR_CUDA_PRODUCTS=fast: it is own .* or cublaslt" fast auto
[ -z "${SIFR_GPU_PROGRAM:-}" ] || exit 0
cmp -s on-gpu/model.safetensors own/model.safetensors && fail "cuBLASLt has the bits of own products"
export SIFR_TEST_NO_CUBLASLT=1
run gpu without 6
cmp own/model.safetensors without/model.safetensors || fail "without cuBLASLt: other bits"
[ "$(grep -c 'own kernels, which are slower .*: cuBLASLt .* was not found' err)" = 1 ] ||
    { cat out err; fail "cuBLASLt is missing, and that is not said once"; }
refused 1 "SIFR_CUDA_PRODUCTS=cublaslt: cuBLASLt .* was not found" cublaslt
