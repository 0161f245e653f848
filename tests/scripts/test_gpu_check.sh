# label: full
# scripts/gpu-check.sh: without a GPU it says so; on the driver that tests play it runs all of its
# parts in small, keeps their limits and says which failed. That every part passes is for a machine
# with a GPU.
# timeout: 300, not under sanitizers
fail() { cat out 2>/dev/null; echo "$1" >&2; exit 1; }
check="$SOURCE/scripts/gpu-check.sh"
shellcheck "$check" "$SOURCE/scripts/gpu-parts.sh" >out || fail "shellcheck"

"$check" "$BUILD" results >out 2>&1 || fail "without a GPU: exit code $?"
if grep -q '^gpu-check: no GPU' out; then
    [ ! -e results/gpu-check.json ] || fail "results without a GPU"
fi

# In place of NVIDIA's: says what it was asked for, and finds a fault in one run.
mkdir bin
cat >bin/compute-sanitizer <<'S'
#!/bin/bash
echo "tool $2 of $5"
[ "$2 ${5##*/}" != "racecheck test_cuda_sums" ] || exit 9
shift 4
exec "$@"
S
chmod +x bin/compute-sanitizer
code=0
PATH=$PWD/bin:$PATH "$check" --fake "$BUILD" results >out 2>&1 || code=$?
[ $code = 1 ] || fail "on the played driver: exit code $code"
for part in look bits ops golden runs ranks program repeat speed; do
    grep -qE "^\| $part \| passed \| [0-9]+ \|" out || fail "$part: $(tail -n 5 results/$part.log)"
done
[ "$(grep -cE '^\| stage [13] \| [12] ranks \| [0-9a-f]{16} \|' out)" = 4 ] || fail "bits of ranks"
grep -qE '^\| stage 3, two pipeline stages \| 2 ranks \| [0-9a-f]{16} \|' out || fail "bits of stages"
grep -q '^| sanitizer | failed |' out || fail "a fault that the sanitizer finds"
grep -q '^| racecheck | test_cuda_sums | failed |' out || fail "which tool failed"
[ "$(grep -cE '^\| (memcheck|synccheck|racecheck|initcheck) \| .* \| passed \|' out)" = 7 ] ||
    fail "what the sanitizer passed"
grep -qE '^\| small product, forward \| bf16 \| [0-9.]+ \|' out || fail "rates of products"
grep -qE '^\| sifr, tiny \| [0-9.]+ \| [0-9.]+ % \| [0-9.e+]+ \|' out || fail "steps beside the file"
[ "$(grep -c PASSED results/ops.log)" -ge 1 ] || fail "no log"
python3 - <<'P' || fail "gpu-check.json"
import json
parts = {p["part"]: p for p in json.load(open("results/gpu-check.json"))["parts"]}
assert len(parts) == 10 and parts["ops"]["result"] == "passed", parts
assert len({r[2] for r in parts["ranks"]["rows"]}) == 1, parts["ranks"]
assert ["sifr, tiny"] == [r[0] for r in parts["speed"]["rows"] if r[0].startswith("sifr")]
P

"$check" --fake --figures "$BUILD" results >out 2>&1 || fail "figures: exit code $?"
grep -qE '^\| sifr, tiny \| [0-9.]+ \|' out || fail "tokens/s"
grep -qE '^\| PyTorch, .*tiny \| (not run|failed: |[0-9.])' out || fail "PyTorch"
grep -qE '^\| tiny \| [0-9]+ \| [0-9.]+ \|' out || fail "the largest model"
[ -s results/gpu-figures.json ] || fail "gpu-figures.json"

"$check" --fake --parts program,look --seconds 1 "$BUILD" late >out 2>&1 &&
    fail "a part without an end passed"
grep -q '^| program | no end within 1 s |' out || fail "the limit"
grep -q '^| look | not run |' out || fail "what did not fit"

code=0
"$check" --parts none "$BUILD" results >out 2>&1 || code=$?
[ $code = 2 ] && grep -q 'no part none' out || fail "an unknown part"
