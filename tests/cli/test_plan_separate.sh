# `sifr plan` for a described machine whose devices have memory of their own: two memories, with a
# limit each; what "cpu" then means in a config; what is refused.
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
host() { sed '1,/^  "host": /d' out | grep "\"$1\":" | sed -n '1s/.*: \([^,]*\),*/\1/p'; }

cat >machine.json <<'END'
{"version": 1, "fp32_operations_per_s": 1e12, "bf16_operations_per_s": 1e13, "memory_bytes_per_s": 1e12,
 "copy_bytes_per_s": 1e10, "separate_memory": true}
END
cat >host.json <<'END'
{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}},
 "activation_checkpointing": {"cpu_checkpointing": true}}
END
echo '{"zero_optimization": {"stage": 3}, "sifr": {"recompute": "unit"}}' >device.json

expect 0 --config device.json --machine machine.json --json
device=$(number peak_bytes)
[ "$(host bytes)" = 0 ] || fail "something is on the host"
expect 0 --config host.json --json # CPU ranks: one memory
grep -q '"host": ' out && fail "two memories on CPU ranks"
[ "$(number peak_bytes)" = "$device" ] || fail "cpu is another place on CPU ranks"

expect 0 --config host.json --machine machine.json --json
own=$(number peak_bytes) moved=$(host bytes)
[ "$own" -lt "$device" ] && [ "$moved" -gt 0 ] || fail "$own on the device, $moved on the host"
for class in parameters "master weights" moments activations; do
    [ "$(host "$class")" -gt 0 ] || fail "$class are not on the host"
done
[ "$(host written_bytes)" -ge "$moved" ] || fail "a step writes less than is there"

# --- DeepSpeed's estimates of the same: 18 bytes a parameter on the host, and half as much more ---
mebibytes() { awk "BEGIN { printf \"%.2f MiB\", $1 / 1048576 }"; }
parameters=$(sed -n 's/^  "parameters": \([0-9]*\),*$/\1/p' out)
theirs=$(mebibytes "27 * $parameters") ours=$(mebibytes "$moved")
expect 0 --config host.json --machine machine.json --compare deepspeed
says '^DeepSpeed.s estimators .* 1 x 1 ranks, offload_optimizer and offload_param$'
says "^DeepSpeed, also on the host .* $theirs$"
[ "$(sed -n '/^DeepSpeed, also/{n;p}' out | grep -c "^sifr .* $ours$")" = 1 ] ||
    fail "not $ours on the host"

# --- a limit for each ---
expect 0 --config host.json --machine machine.json --device-memory "$own" --host-memory 1GiB
says '^on the host +[0-9]+ '
says '^copies +10 GB/s$'
says '^It fits: a rank takes .* of the device.s memory and .* of the host.s, and may take '
expect 0 --config host.json --machine machine.json --device-memory $((own - 1)) --host-memory 1GiB
says "^It does not fit on that machine. memory: a rank takes .* of the device's, and may take"
expect 0 --config host.json --machine machine.json --device-memory "$own" --host-memory $moved
says "^It does not fit on that machine. memory: a rank takes .* of the host's, and may take"
expect 0 --config host.json --machine machine.json --dump
says '^ *[0-9]+ copy read .* bytes host@[0-9]+ into @[0-9]+$'
says '^ *[0-9]+ copy write .* bytes @[0-9]+ into host@[0-9]+$'

# --- what is not built ---
expect 2 --config host.json --machine machine.json --fit
grep -q -- '--fit: machine.json says separate_memory' err || fail "--fit is not refused"
sed 's/"stage": 3/"stage": 1/; s/, "offload_param": {"device": "cpu"}//' host.json >sums.json
sed -i 's/^{/{"sifr": {"offload_gradients": "cpu"}, /' sums.json
expect 2 --config sums.json --machine machine.json --world-size 2
grep -q 'gradients of several ranks are in host memory at ZeRO stages 2 and 3 only' err ||
    fail "gradients at stage 1 are not refused"
exit 0
