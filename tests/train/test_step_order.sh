# label: full
# step_order "auto" on two real ranks: with a slow wire it takes the order that gathers and reduces
# once, says so, and trains the same weights as the other one.
# not under sanitizers (MPI keeps what it took), timeout: 120
fail() { echo "$1" >&2; cat log >&2; exit 1; }
. "$SOURCE/tests/support/find_mpi.sh"
export XDG_CACHE_HOME=$PWD/cache
mkdir -p cache/sifr
cat "$SOURCE"/docs/*.md >text.txt

train() { # ORDER OUTPUT
    echo "{\"zero_optimization\": {\"stage\": 3}, \"wall_clock_breakdown\": true,
        \"sifr\": {\"step_order\": \"$1\"}}" >ds.json
    "$SIFR" train --config ds.json --model "$SOURCE/tests/golden/models/llama3" --data text.txt \
        --output "$2" --seq-length 32 --max-steps 3 --per-device-train-batch-size 1 \
        --gradient-accumulation-steps 4 --ranks 2 >log 2>&1 || fail "$1: exit code $?"
}

echo '{"host_latency_s": 0.5, "host_bytes_per_s": 1e9}' >cache/sifr/comm.json
train auto slow
grep -q '^step_order unit: predicted [0-9.]* s a step, batch [0-9.]* s, on a usual machine$' log || fail "no word of it"
# wall_clock_breakdown lays the same prediction beside what was measured: gathers only start there
predicted=$(sed -n 's/^step_order unit: predicted \([0-9.]*\) .*/\1/p' log)
planned() { sed -n "s/^  $1 .* \([0-9.]*\)\$/\1/p" log; }
awk "BEGIN { step = $(planned step) / 1e3; exit !(step > 0.9 * $predicted &&
    step < 1.1 * $predicted && $(planned wait) / 1e3 > 0.5 * step && $(planned gather) < 10) }" ||
    fail "planned: step $(planned step), wait $(planned wait), gather $(planned gather) ms"
train batch other
! grep -q '^step_order' log || fail "an order that was asked for is not chosen"
cmp slow/model.safetensors other/model.safetensors
# The order is in the checkpoint. At three micro batches of stage 3 both orders have bits of their own,
# so a run that goes on keeps its order, whatever would be quicker now, or says what differs.
on() { # ORDER OUTPUT STEPS OPTION...
    echo "{\"zero_optimization\": {\"stage\": 3}, \"sifr\": {\"step_order\": \"$1\"}}" >ds.json
    "$SIFR" train --config ds.json --model "$SOURCE/tests/golden/models/llama3" --data text.txt \
        --output "$2" --seq-length 32 --max-steps "$3" --per-device-train-batch-size 1 \
        --gradient-accumulation-steps 3 --ranks 2 "${@:4}" >log 2>&1 || fail "$*: exit code $?"
}
part=checkpoint-4/state-00001-of-00002.safetensors # the model's own type hides a bit
on batch whole 4
on batch broken 2
cp -r broken unit
on auto broken 4 --resume
grep -q '^step_order batch: as in checkpoint-2$' log || fail "no word of the order that is kept"
! grep -q 'results will differ' log || fail "nothing differs"
cmp -s whole/$part broken/$part || fail "other bits"
on unit unit 4 --resume
grep -q 'was made with gradient sums "of 2 data ranks, 3 micro batches of each, reduced one by one", this run has "in one tree, whatever the number of ranks": continuing, but results will differ' log ||
    fail "what differs is not said"
! cmp -s whole/$part unit/$part || fail "the same bits"
on auto unit 5 --resume --activation-memory 150KiB
grep -q 'step_order unit, which checkpoint-4 has, does not fit in memory: another one is chosen' log ||
    fail "an order that does not fit"
grep -q '^step_order batch: only that fits in memory$' log || fail "the other order"
# On other ranks it may be the other order that adds gradients as the run did: one rank has one tree
# in both, and two ranks have it in unit alone.
on unit all 4
on auto moved 2 --ranks 1 --gradient-accumulation-steps 6
on auto moved 4 --resume
grep -q '^step_order unit: \(as in\|adds gradients as the run of\) checkpoint-2' log || fail "moved: no word"
! grep -q 'results will differ' log || fail "moved: $(cat log)"
cmp all/$part moved/$part || fail "moved: other bits"
on batch moved 5 --resume
grep -q 'step_order batch adds gradients otherwise than the run of checkpoint-4 did; step_order unit' \
    log || fail "the order that has the bits is not named"
# A plan and a run choose alike, by the same figures.
on auto fresh 1
"$SIFR" plan --config ds.json --model "$SOURCE/tests/golden/models/llama3" --seq-length 32 \
    --per-device-train-batch-size 1 --gradient-accumulation-steps 3 --ranks 2 >plan
[ "$(sed -n 's/^auto *//p' plan)" = "$(sed -n 's/^step_order //p' log)" ] ||
    fail "the plan: $(cat plan)"

echo '{"host_bytes_per_s": -1}' >cache/sifr/comm.json
train auto wrong
grep -q 'warning.*comm.json: host_bytes_per_s: -1 must be' log || fail "a wrong file is not named"
