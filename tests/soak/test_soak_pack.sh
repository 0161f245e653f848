# label: soak
# timeout: 2400, not under sanitizers, runs alone
# The pack that `make gpu-pack` makes, with MPICH and kernels, where nothing else is installed, the
# loopback is down and the host's name unknown: every part of gpu-check and all golden models on the
# played driver, and the same weights of 1, 2, 4 and 8 ranks. Needs root; fetches nvcc where there is
# none.
fail() { tail -n 40 out 2>/dev/null; echo "$1" >&2; exit 1; }
. "$SOURCE/tests/support/bare_root.sh"
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u GPU_TARGETS \
    make -C "$SOURCE" BUILD="$BUILD/pack" gpu-pack >out 2>&1 || {
    if grep -q 'wheels of nvcc could not be fetched' out; then
        echo "skipped: no nvcc here, and none to be had"
        exit 77
    fi
    fail "make gpu-pack: exit code $?"
}
size=$(sed -n 's/^.*gpu\.tar\.zst: //p' out)
made=$SECONDS
bare_root "$BUILD/pack/gpu.tar.zst"
inside /gpu/build/sifr doctor --json || fail "doctor: exit code $?"
grep -q '"built_for": "90a"' out || fail "kernels for other GPUs than 90a"
grep -q '"opened": "MPICH"' out || fail "another MPI than MPICH"

INSIDE_SECONDS=900
inside /gpu/gpu-check /tmp/results --fake || fail "gpu-check: exit code $?"
[ -s root/tmp/results/gpu-check.json ] || fail "no results"
inside /bin/env SOURCE=/gpu SIFR_TEST_GPU=fake CMOCKA_MESSAGE_OUTPUT=stdout \
    /gpu/build/tests/test_cuda_golden || fail "golden models: exit code $?"

cat >root/tmp/ranks.sh <<'S'
cd /tmp
PATH=/gpu/bin:$PATH
awk 'BEGIN { for (i = 0; i < 400; i++) print "good bad food was were day the a very" }' >text
cat >tiny.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 280,
 "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": false}
J
/gpu/build/sifr tokenizer train --vocab-size 280 --data text --output tok >log 2>&1
/gpu/build/sifr init --config tiny.json --tokenizer tok --output model --seed 3 >log
for stage in 0 1 2 3; do
    for ranks in 1 2 4 8; do
        cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
 "gradient_clipping": 1.0, "zero_optimization": {"stage": $stage},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}}, "sifr": {"seq_length": 32, "max_steps": 3}}
J
        /gpu/build/tests/sifr_on_fake_gpu train --config ds.json --model model --data text \
            --threads 1 --device cuda --ranks $ranks --output trained >log 2>&1 ||
            { cat log && exit 1; }
        echo "stage $stage, $ranks ranks: $(sha256sum <trained/model.safetensors)"
        rm -r trained
    done
done
S
inside /bin/bash -eu /tmp/ranks.sh || fail "ranks: exit code $?"
[ "$(grep -c '^stage [0-3], [1248] ranks: [0-9a-f]\{64\} ' out)" = 16 ] || fail "not 16 runs"
[ "$(sed 's/.*: //' out | sort -u | wc -l)" = 1 ] || fail "other weights"
echo "16 runs of ranks; the pack: $size; made in $made s, checked in $((SECONDS - made)) s"
