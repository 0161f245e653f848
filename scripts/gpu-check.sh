#!/bin/bash
# Checks this machine's first GPU with a build that has kernels for it (make CUDA=1 tests):
#     gpu-check.sh [--fake] [--parts PART,…] [--seconds N] BUILD OUT
# Runs each part within a limit of its own, and all within N seconds (510); what did not fit is
# listed as not run. Writes OUT/gpu-check.json, a log a part, and the table that it prints.
# Without a GPU it says so and ends with 0; with 1 if a part failed. --fake: on the driver that
# tests play, which shows that this script works.
set -u
parts=look,golden,runs,program seconds=510 fake=
while [ $# -gt 2 ]; do
    case $1 in
    --fake) fake=1 ;;
    --parts) parts=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    *) echo "gpu-check.sh: unknown option $1" >&2 && exit 2 ;;
    esac
    shift
done
if [ $# != 2 ] || [ ! -x "$1/sifr" ]; then
    echo "usage: gpu-check.sh [--fake] [--parts PART,…] [--seconds N] BUILD OUT" >&2
    exit 2
fi
build=$(realpath "$1") source=$(realpath "$(dirname "$0")/..")
mkdir -p "$2" && out=$(realpath "$2") || exit 2
export SOURCE=$source BUILD=$build SIFR=$build/sifr CMOCKA_MESSAGE_OUTPUT=stdout
[ "$fake" ] || export SIFR_TEST_GPU=1 SIFR_GPU_PROGRAM=$build/sifr

limit_of() {
    case $1 in
    look) echo 20 ;;
    golden) echo 200 ;;
    runs) echo 100 ;;
    program) echo 190 ;;
    *) return 1 ;;
    esac
}
for part in ${parts//,/ }; do
    limit_of "$part" >/dev/null || { echo "gpu-check.sh: no part $part" >&2 && exit 2; }
done

gpu=$("$SIFR" doctor --json 2>/dev/null | sed -n '/"gpus": \[$/,/\]/s/^ *"name": "\(.*\)",*$/\1/p' |
    head -n 1)
[ "$fake" ] && gpu="none: a driver that a test plays"
if [ -z "$gpu" ]; then
    echo "gpu-check: no GPU that this program can use; sifr doctor says:"
    "$SIFR" doctor 2>&1 | grep -iE 'gpu|cuda|driver' || :
    exit 0
fi

begun=$SECONDS failed=0 rows='' json=''
for part in ${parts//,/ }; do
    limit=$(limit_of "$part") left=$((seconds - (SECONDS - begun))) start=$SECONDS
    [ "$limit" -le "$left" ] || limit=$left
    if [ "$limit" -le 0 ]; then
        result="not run"
    else
        case $part in
        look) set -- "$SIFR" doctor --json ;;
        golden) set -- "$build/tests/test_cuda_golden" ;;
        runs) set -- "$build/tests/test_cuda_runs" ;;
        program) set -- "$source/tests/support/run-script.sh" "$source/tests/cli/test_gpu_runs.sh" ;;
        esac
        timeout "$limit" "$@" >"$out/$part.log" 2>&1
        case $? in
        0) result=passed ;;
        77) result="not run" ;;
        124) result="no end within $limit s" failed=1 ;;
        *) result=failed failed=1 ;;
        esac
    fi
    rows="$rows| $part | $result | $((SECONDS - start)) |"$'\n'
    json="$json${json:+,}"$'\n'"  {\"part\": \"$part\", \"result\": \"$result\", \"seconds\": $((SECONDS - start))}"
done
{
    echo '{"gpu": "'"$gpu"'", "date": "'"$(date -u +%Y-%m-%d)"'", "sifr": "'"$("$SIFR" --version | head -n 1)"'",'
    echo ' "parts": ['"$json"
    echo ' ]}'
} >"$out/gpu-check.json"
{
    echo "$gpu, $(date -u +'%Y-%m-%d %H:%M UTC')"
    echo
    echo '| part | result | seconds |'
    echo '|---|---|---|'
    echo -n "$rows"
} | tee "$out/gpu-check.md"
exit $failed
