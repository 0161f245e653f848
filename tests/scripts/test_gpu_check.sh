# label: full
# scripts/gpu-check.sh: without a GPU it says so; on the driver that tests play it runs its parts,
# keeps their limits and says which failed. That every part passes is for a machine with a GPU.
# timeout: 300, not under sanitizers
fail() { cat out 2>/dev/null; echo "$1" >&2; exit 1; }
check="$SOURCE/scripts/gpu-check.sh"
shellcheck "$check" >out || fail "shellcheck"

"$check" "$BUILD" results >out 2>&1 || fail "without a GPU: exit code $?"
if grep -q '^gpu-check: no GPU' out; then
    [ ! -e results/gpu-check.json ] || fail "results without a GPU"
fi

"$check" --fake --parts look,runs "$BUILD" results >out 2>&1 || fail "on the fake driver: exit code $?"
grep -q '^| look | passed | [0-9]* |$' out || fail "look"
grep -q '^| runs | passed | [0-9]* |$' out || fail "runs"
grep -q '"part": "runs", "result": "passed"' results/gpu-check.json || fail "gpu-check.json"
grep -q 'PASSED' results/runs.log || fail "no log"

"$check" --fake --parts runs,look --seconds 1 "$BUILD" late >out 2>&1 && fail "a part without an end passed"
grep -q '^| runs | no end within 1 s |' out || fail "the limit"
grep -q '^| look | not run |' out || fail "what did not fit"

code=0
"$check" --parts none "$BUILD" results >out 2>&1 || code=$?
[ $code = 2 ] && grep -q 'no part none' out || fail "an unknown part"
