# label: full
# scripts/gpu-check.sh: without a GPU it says so; on the driver that tests play it runs all of its
# parts in small, says what ran, and leaves results after each part whatever ends it. That every part
# passes is for a machine with a GPU.
# timeout: 400, not under sanitizers
fail() { cat out 2>/dev/null; echo "$1" >&2; exit 1; }
unset FAKE_GPU
check="$SOURCE/scripts/gpu-check.sh"
(cd "$SOURCE/scripts" && shellcheck -x gpu-check.sh gpu-parts.sh) >out || fail "shellcheck"

# A machine with one is checked by hand.
code=0
"$check" "$BUILD" without >out 2>&1 --seconds 1 || code=$?
if grep -q '^gpu-check: no GPU' out; then
    [ $code = 1 ] || fail "without a GPU: exit code $code"
    grep -q '^CUDA driver ' out || fail "nothing of the driver"
    grep -q '^| look | not run | 0 | nothing | no GPU that this program can use: ' without/gpu-check.md ||
        fail "no results"
    grep -q '"gpu": "no GPU"' without/gpu-check.json || fail "without a GPU: gpu-check.json"
fi
"$check" --help >out || fail "--help"
grep -q '^ *--seconds N' out || fail "--help lists no options"

# In place of NVIDIA's: reports a refused call of the driver unless told not to, and finds a race.
mkdir bin
cat >bin/compute-sanitizer <<'S'
#!/bin/bash
tool=$2 api=yes
shift 2
[ "$1" != --report-api-errors ] || { api=$2 && shift 2; }
shift 2
if [ "$tool $api ${1##*/}" = "memcheck yes test_cuda_sums" ]; then
    echo "========= Program hit CUDA_ERROR_NOT_FOUND (error 500) on CUDA API call to cuModuleGetFunction"
    exit 9
fi
if [ "$tool" = racecheck ]; then
    echo "========= Error: Race reported between Write access and Read access"
    exit 9
fi
exec "$@"
S
cat >bin/ncu <<'S'
#!/bin/bash
while [ "$1" != --kernel-name ]; do shift; done
for value in '"gpu__time_duration.sum","nsecond","12,500"' \
    '"sm__throughput.avg.pct_of_peak_sustained_elapsed","%","61.25"' \
    '"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed","%","30.5"'; do
    echo "\"0\",\"1\",\"gpu_speed\",\"127.0.0.1\",\"$2\",\"1\",\"7\",\"GPU Speed Of Light\",$value"
done
S
cat >bin/python3 <<'S'
#!/bin/bash
[ "$1" = -c ] && exit 0
echo "torch 2.11.0, loss 5.600"
echo "steps 4 of 4, 2 x 32 tokens"
echo "tokens_per_second 1234.5"
S
chmod +x bin/*
code=0
PATH=$PWD/bin:$PATH "$check" --fake "$BUILD" results >out 2>&1 || code=$?
[ $code = 1 ] || fail "on the played driver: exit code $code"
parts="look bits ops golden train speed ranks peer again runs program"
for part in $parts; do
    grep -qE "^\| $part \| passed \| [0-9]+ \|" out || fail "$part: $(tar -xOf results/gpu-check-logs.tar "logs/$part.log" | tail -n 5)"
done
grep -qE '^\| twins \| not run \| [01] \| nothing \| this program has one attention' out || fail "a part that is not built"
# What really ran.
ran() { # PART WORDS…
    local part=$1 word
    shift
    for word; do
        grep -E "^\| $part \|" out | grep -qF -- "$word" || fail "$part: what ran is not '$word'"
    done
}
ran bits "products own"
ran ops "products own"
ran golden "products"
ran train "products cuBLASLt 13.0.2" "memory pinned"
ran speed "products cuBLASLt 13.0.2"
ran ranks "exchange IPC" "waits words, host (the first step)" "waits host (SIFR_DEVICE_WAITS=host)" "2 ranks share a GPU"
ran again "products own" "products cuBLASLt"
ran peer "torch 2.11.0"
ran memcheck "products own" "once more without those"
for part in $parts memcheck twins; do
    grep -qE "^\| $part \| [a-z ]+ \| [0-9]+ \| [^|]*[^| ][^|]* \|" out || fail "$part: nothing of what ran"
done
# Tables.
grep -q '^| IPC | passed | ' out || fail "the trial of IPC"
[ "$(grep -cE '^\| stage [13](, the host waits)? \| 2 \| [0-9a-f]{16} \| IPC, waits: (words and host|host)' out)" = 3 ] ||
    fail "bits of ranks"
grep -qE '^\| 3 \| [0-9.]+ \| [0-9.]+ \| [1-9][0-9]* \| [0-9]+ \|' out || fail "the tiny training"
grep -qE '^\| small product, forward \| bf16 \| cuBLASLt \| [0-9.]+ \|' out || fail "rates of products"
grep -qE '^\| sifr, tiny, 2 x 32 \| [1-9][0-9]* \| [0-9.]+ % \| [1-9][0-9]* \|' out ||
    fail "steps beside the prediction"
grep -qE '^\| PyTorch eager, tiny, 2 x 32 \| 1234 \|' out || fail "PyTorch"
# A refused call is no fault of a kernel, and a race is one.
grep -q '^| memcheck | failed | ' out || fail "a race that is found"
[ "$(grep -cE '^\| memcheck \| test_cuda_(sums|attention) \| passed \|' out)" = 2 ] || fail "memcheck"
grep -q '^| racecheck | test_cuda_sums | failed |' out || fail "which tool failed"
# Few files, which hold all.
files() { find results -type f | sort | tr '\n' ' '; }
[ "$(files)" = "results/gpu-check-logs.tar results/gpu-check.json results/gpu-check.md " ] ||
    fail "files: $(files)"
[ "$(tar -tf results/gpu-check-logs.tar | grep -c '\.log$')" = 13 ] || fail "a log for each part"
/usr/bin/env python3 - <<'P' || fail "gpu-check.json"
import json
run = json.load(open("results/gpu-check.json"))
parts = {p["part"]: p for p in run["parts"]}
assert list(parts) == ["look", "bits", "ops", "twins", "golden", "train", "speed", "ranks", "peer",
                       "again", "memcheck", "runs", "program"], list(parts)
assert sum(p["limit"] for p in run["parts"][:11]) <= 380, run
assert run["seconds"] <= 380 and all(p["seconds"] <= 3 * p["limit"] + 3 for p in run["parts"])
assert len({r[2] for r in parts["ranks"]["rows"] if r[0].startswith("stage")}) == 1, parts["ranks"]
assert parts["train"]["ran"] and parts["again"]["result"] == "passed", parts
P
"$SOURCE/scripts/gpu-tables.py" results >tables || fail "gpu-tables.py"
grep -q '^gpu.md: nothing is filled: this is no run on a GPU' tables || fail "played, and said to be a GPU"
grep -q '^gpu.md, Parts: golden: filled$' tables || fail "what would be filled"
grep -q '^gpu.md, Parts: twins' tables && fail "a row that the page has not"
grep -q '^gpu.md, Ranks on one GPU: stage 3, 2: filled$' tables || fail "a row of two cells"
grep -q '^gpu.md, Steps: sifr, gpt2, 64 x 1024: not filled (speed: passed, ' tables ||
    fail "another model fills a row"
grep -q '^| stage 1 | 2 | [0-9a-f]* | IPC, ' tables || fail "a table of the run"
echo '{}' >results/gpu-other.json
"$SOURCE/scripts/gpu-tables.py" results >tables 2>&1 && fail "a file of something else"
grep -q 'gpu-other.json: not written by gpu-check.sh' tables || fail "which file"
rm results/gpu-other.json

PATH=$PWD/bin:$PATH "$check" --fake --figures "$BUILD" results >out 2>&1 || fail "figures: exit code $?"
grep -qE '^\| sifr, tiny, 2 x 32 \| [0-9]+ \|' out || fail "tokens/s"
grep -q '^| PyTorch compile, tiny, 2 x 32 | 1234 |' out || fail "compiled PyTorch"
grep -q '^| gemm_nt_bf16 | 12.5 | 61.2 | 30.5 |' out || fail "figures of ncu"
grep -qE '^\| tiny \| [0-9]+ \| [0-9]+ \| [0-9.]+ [KMG]iB \|' out || fail "the largest model"
[ "$(find results -type f | wc -l)" = 6 ] && [ -s results/gpu-figures.json ] || fail "six files"

# Less time: the order decides, and what does not fit is named. Where a kernel never ends, the total
# still holds. Results are there after each part.
expect_row() { grep -qE "^\| $1" late/gpu-check.md || { cat late/gpu-check.md; fail "no row '$1'"; }; }
"$check" --fake --seconds 1 --parts bits,ops "$BUILD" late >out 2>&1 || fail "nothing ran, and that failed"
expect_row 'bits \| not run \| 0 \| nothing \| no time was left: '
expect_row 'ops \| not run \|'
begun=$SECONDS
FAKE_GPU=hang=gemm_nt_bf16_small "$check" --fake --seconds 40 --parts ops,golden "$BUILD" late >out 2>&1 || :
[ $((SECONDS - begun)) -le 70 ] || fail "40 s took $((SECONDS - begun))"
expect_row 'ops \| failed \| 2[0-9] \| .*no end within 20 s'
expect_row 'golden \| (cut off after|not run)'
"$check" --fake --parts bits,ops,program "$BUILD" killed >out 2>&1 &
killed=$!
until grep -qs '^| ops ' killed/gpu-check.md; do sleep 0.05; done
holder=$(pgrep -f 'gpu_look --hold' -P $killed) || fail "no process holds a context"
kill -KILL $killed
wait $killed 2>/dev/null || :
grep -q '"part": "ops", "result": "passed"' killed/gpu-check.json || fail "killed: no results"
tar -tf killed/gpu-check-logs.tar | grep -q ops.log || fail "killed: no logs"
for _ in $(seq 600); do kill -0 "$holder" 2>/dev/null || break; sleep 0.05; done
! kill -0 "$holder" 2>/dev/null || fail "the context is held for ever"

# Interrupted: at once, with what was measured.
# Its programs have a path of their own, so that those of tests beside this one are not taken for them.
mkdir mine
ln -s "$BUILD/sifr" "$BUILD/tests" mine
FAKE_GPU=hang=gemm_nt_bf16_small "$check" --fake --parts bits,ops,golden mine stopped >out 2>&1 &
stopped=$!
until grep -qs '^| bits ' stopped/gpu-check.md && pgrep -f "$PWD/mine/tests/test_cuda_gemm" >/dev/null; do sleep 0.05; done
kill -TERM $stopped
code=0
wait $stopped || code=$?
[ $code = 143 ] || fail "interrupted: exit code $code"
grep -q '^| bits | passed ' stopped/gpu-check.md || fail "interrupted: what was measured"
grep -q '^| ops | interrupted ' stopped/gpu-check.md || fail "interrupted: what was cut"
grep -q '^| golden | not run | 0 | nothing | interrupted |' stopped/gpu-check.md || fail "interrupted: what is left"

for wrong in "--parts none" "--seconds ten"; do
    code=0
    # shellcheck disable=SC2086
    "$check" $wrong "$BUILD" results >out 2>&1 || code=$?
    [ $code = 2 ] && grep -qE 'no part none|--seconds ten' out || fail "$wrong: exit code $code"
done
