# `sifr plan` for ranks that are not there: what each ZeRO stage holds and moves, against the
# formulas of the design; predicted time on a machine that is only described; the step order that
# "auto" takes.
fail() { echo "$1" >&2; cat out err >&2; exit 1; }
expect() { # CODE ARGUMENT…
    local want=$1 code=0
    shift
    "$SIFR" plan --model model --seq-length 32 --per-device-train-batch-size 1 "$@" \
        >out 2>err || code=$?
    [ "$code" = "$want" ] || fail "$*: exit code $code, not $want"
    [ "$want" = 0 ] || [ "$(wc -l <err)" = 1 ] || fail "$*: an error is one line"
}
says() { grep -qE -- "$1" out || fail "no line like: $1"; }
complains() { grep -qE -- "$1" err || fail "no error like: $1"; }
# of NAME STAGE: the figure of a stage; own NAME: of the plan itself
of() { sed '1,/"stages":/d' out | grep "\"$1\":" | sed -n "$(($2 + 1))s/.*: \([^,]*\),*/\1/p"; }
own() { grep "\"$1\":" out | sed -n '1s/.*: \([^,]*\),*/\1/p'; }
same() { [ "$2" = "$3" ] || fail "$1: $2, not $3"; }

export XDG_CACHE_HOME=$PWD/cache
mkdir -p model cache/sifr
sed 's/"tie_word_embeddings": true/"tie_word_embeddings": false/' \
    "$SOURCE/tests/golden/models/llama3/config.json" >model/config.json
cat >machine.json <<'END'
{"version": 1, "fp32_operations_per_s": 1e11, "bf16_operations_per_s": 1e12,
 "memory_bytes_per_s": 1e10, "instruction_s": 0, "host_latency_s": 1e-5, "host_bytes_per_s": 1e9,
 "network_latency_s": 0.5, "network_bytes_per_s": 1e8, "room_bytes": 1000000000}
END
cat >zero.json <<'END'
{"zero_optimization": {"stage": 3}}
END
ranks=8 k=2
plan="--machine machine.json --bf16 --world-size $ranks --gradient-accumulation-steps $k"

# --- bytes: padded elements, by the table of the design ---
expect 0 $plan --json --config zero.json
elements=$(($(of parameters 0) / 2))
[ "$elements" -gt 0 ] && [ $((elements % (ranks * 1024))) = 0 ] || fail "elements: $elements"
for stage in 0 1 2 3; do
    cut=1
    [ $stage = 0 ] || cut=$ranks
    same "stage $stage: moments" "$(of moments $stage)" $((8 * elements / cut))
    same "stage $stage: masters" "$(of "master weights" $stage)" $((4 * elements / cut))
done
same "stage 3: parameters" "$(of parameters 3)" $((2 * elements / ranks))
pass=$((elements * (ranks - 1) / ranks))
same "stage 0: gathers" "$(of gathered_bytes 0)" $((4 * pass))
same "stage 0: reductions" "$(of reduced_bytes 0)" $((4 * pass))
same "stage 1: gathers" "$(of gathered_bytes 1)" $((2 * pass))
same "stage 1: reductions" "$(of reduced_bytes 1)" $((4 * pass))
same "stage 2: gathers" "$(of gathered_bytes 2)" $((2 * pass))
for stage in 2 3; do
    times=1
    [ "$(of step_order $stage)" = '"unit"' ] || times=$k
    same "stage $stage: reductions" "$(of reduced_bytes $stage)" $((4 * pass * times))
done
same "the run's own" "$(own gathered_bytes)" "$(of gathered_bytes 3)"
same "the run's own" "$(own step_s)" "$(of step_s 3)"
calls=$(own gathers)

# A stage that the settings are refused with has no figures, not those of an empty plan.
echo '{"zero_optimization": {"stage": 3, "zero_quantized_gradients": true}}' >refused.json
expect 0 $plan --config refused.json
says '^the block +- +- +[0-9.]+ [KM]iB +[0-9.]+ [KM]iB$'
says '^seconds a step +- +- +[0-9.e-]+ +[0-9.e-]+$'
! grep -q 'PiB' out || fail "a wrapped number: $(grep PiB out)"
expect 0 $plan --json --config refused.json
sed '1,/"stages":/d' out | awk '/"peak_bytes":/ { n++; bad += ($2 == "null,") != (n < 3) }
    END { exit bad || n != 4 }' || fail "bytes of a refused stage"
expect 0 $plan --config zero.json --rank 5 --dump
same "gathers of the list" "$(grep -c ' communication gather' out)" "$calls"

# --- time ---
expect 0 $plan --json --ranks-per-host 8
near=$(of step_s 0)
expect 0 $plan --json --ranks-per-host 4 # each call then takes half a second more
far=$(of step_s 0)
moved=$(($(of gathers 0) + $(of reductions 0)))
awk "BEGIN { exit !($far - $near > 0.4 * $moved && $far - $near < 0.6 * $moved + 5) }" ||
    fail "$moved calls between hosts: $near s, then $far s"
expect 0 $plan --config zero.json
says '^predicted +[0-9.e+-]+ s a step, .* waiting for it'
says '^machine +100 fp32 and 1000 bf16 GFLOP/s, memory 10 GB/s a rank, machine.json$'
says '^link +ranks of one host: 10 us a call, 1 GB/s$'
says '^optimizer state +[0-9.]+ .iB +[0-9.]+ .iB'
expect 0 --bf16 --world-size 4
says '^link .* assumed: measure it'
echo '{"version": 1, "host_latency_s": 3e-6, "host_bytes_per_s": 7e9}' >cache/sifr/comm.json
expect 0 --bf16 --world-size 4 # what `sifr bench comm` has stored
says '^link +ranks of one host: 3 us a call, 7 GB/s$'
echo '{"host_bytes_per_s": 0}' >cache/sifr/comm.json
expect 2 --bf16 --world-size 4
complains "cache/sifr/comm.json: host_bytes_per_s: 0 must be a number above 0"
rm cache/sifr/comm.json

expect 0 --world-size 1000000 # which have this machine's memory between them
says '^It does not fit on this machine\. memory: a rank takes '

# --- the order that "auto" takes: fewer passes where the wire is slow, else the smaller one ---
expect 0 $plan --config zero.json --ranks-per-host 4
says '^step .*, step_order unit,'
says '^auto +unit: predicted [0-9.]+ s a step, batch [0-9.]+ s, on a usual machine$'
sed 's/"host_bytes_per_s": 1e9/"host_bytes_per_s": 1e15/; s/"host_latency_s": 1e-5/"host_latency_s": 0/' \
    machine.json >quick.json
expect 0 $plan --config zero.json --machine quick.json
says '^step .*, step_order batch,'
sed 's/"room_bytes": 1000000000/"room_bytes": 2048/' machine.json >small.json
expect 0 $plan --config zero.json --machine small.json
says '^auto +batch: neither fits in memory$'
says '^It does not fit on that machine\. memory: a rank takes .* and may take 2\.00 KiB$'

cat "$SOURCE"/docs/*.md >text.txt
"$SIFR" train --model "$SOURCE/tests/golden/models/llama3" --data text.txt --output trained \
    --seq-length 32 --per-device-train-batch-size 1 --gradient-accumulation-steps 2 --max-steps 1 \
    >out 2>err || fail "train: exit code $?"
grep -qhE '^step_order batch: predicted [0-9.e-]+ s a step, unit [0-9.e-]+ s, on a usual machine$' out err ||
    fail "train does not say which order it takes"

# --- refused ---
expect 2 --world-size 0
complains '--world-size 0: 1 to 1048576'
expect 2 --world-size 2000000
expect 2 --world-size 4 --rank 4
complains '--rank 4: of 4 ranks the last one is 3'
expect 1 --machine none.json
for wrong in '{"host_bytes_per_s": -1}' '{"memory_bytes_per_s": 0}' '{"version": 2}' '[1]' \
    '{"ranks_per_host": -2}' '{"host_latency_s": "quick"}'; do
    echo "$wrong" >wrong.json
    expect 2 --machine wrong.json
    complains '^sifr plan: wrong.json: '
done

# --ranks is sifr train's name for it, and no short form of --ranks-per-host.
expect 0 --config zero.json --world-size 4 --dump
mv out dump
expect 0 --config zero.json --ranks 4 --dump
cmp out dump || fail "--ranks plans for other ranks than --world-size"
grep -q gather dump || fail "a plan of 4 ranks without a gather"
