# `sifr plan` for a GPU that is only described: scratch from the CUDA kernels' own formulas, copies in
# both directions at a time, what the example's file says; and what is refused.
fail() { echo "$1" >&2; cat out err >&2; exit 1; }
expect() { # CODE ARGUMENT…
    local want=$1 code=0
    shift
    "$SIFR" plan --model "$SOURCE/tests/golden/models/llama3" --seq-length 64 --bf16 \
        --per-device-train-batch-size 8 "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] || fail "$*: exit code $code, not $want"
}
says() { grep -qE -- "$1" out || fail "no line like: $1"; }
number() { grep "\"$1\":" out | sed -n '1s/.*: \([^,]*\),*/\1/p'; }

h100=$SOURCE/examples/h100.json
cat >away.json <<'END'
{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}},
 "activation_checkpointing": {"cpu_checkpointing": true}}
END

# --- refused ---
echo '{"device": "cuda", "fp32_operations_per_s": 1e13}' >figures.json
expect 2 --config away.json --machine figures.json
grep -q 'figures.json: a GPU that is not here cannot be measured; give fp32_op' err ||
    fail "figures that are missing are not named"
echo '{"device": "gpu"}' >name.json
expect 2 --config away.json --machine name.json
grep -q 'name.json: device: "gpu" is neither "cpu" nor "cuda"' err || fail "gpu is taken"
expect 2 --config away.json --machine "$h100" --fit
grep -q -- '--fit: .*h100.json says separate_memory' err || fail "--fit is not refused"

expect 2 --config away.json --machine "$h100" --tile-tokens 4096
grep -q 'tile_tokens 4096: tiles are whole chunks of 8192 tokens' err || fail "a tile of half a chunk"

# --- a CPU with separate memory and the same figures: copies have one queue ---
sed 's/"cuda"/"cpu"/; s/^{/{"separate_memory": true,/' "$h100" >queue.json
expect 0 --config away.json --machine queue.json
says '; copies [0-9.e-]+ s$'
says '^copies +50 GB/s$'
sed 's/50e9/1e6/' queue.json >slow.json # copies take most of the step
expect 0 --config away.json --machine slow.json --json
one=$(number step_s)

# --- the GPU: one for each direction ---
expect 0 --config away.json --machine "$h100"
says '^machine +6\.7e\+04 fp32 and 7\.4e\+05 bf16 GFLOP/s, memory 2\.9e\+03 GB/s a rank, '
says '; copies [0-9.e-]+ s in, [0-9.e-]+ s out$'
says '^copies +50 GB/s each way$'
says '^It fits: a rank takes .* of the device.s memory and .* of the host.s, and may take '
sed 's/50e9/1e6/' "$h100" >slow.json
expect 0 --config away.json --machine slow.json --json
both=$(number step_s)
awk "BEGIN { exit !($both < $one) }" || fail "two queues for copies take $both s, one takes $one s"
