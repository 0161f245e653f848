#!/bin/bash
# Checks this machine's first GPU with a build that has kernels for it (make CUDA=1 tests), or with
# a pack of one (make gpu-pack):
#     gpu-check.sh [--fake] [--figures] [--parts PART,…] [--seconds N] BUILD OUT
# Runs each part (scripts/gpu-parts.sh) within a limit of its own, and all within N seconds (510);
# what did not fit is listed as not run. Writes OUT/gpu-check.json, a log a part, and the tables
# that it prints. --figures: figures beside PyTorch instead of checks, into gpu-figures.json.
# Without a GPU it says so and ends with 0; with 1 if a part failed. --fake: in small on the driver
# that tests play, which shows that this script works.
set -u
checks=look,bits,ops,golden,runs,program,ranks,repeat,sanitizer,speed
parts='' seconds=510 FAKE='' what=gpu-check
while [ $# -gt 2 ]; do
    case $1 in
    --fake) FAKE=1 ;;
    --figures) what="gpu-figures" ;;
    --parts) parts=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    *) echo "gpu-check.sh: unknown option $1" >&2 && exit 2 ;;
    esac
    shift
done
if [ $# != 2 ] || [ ! -x "$1/sifr" ]; then
    echo "usage: gpu-check.sh [--fake] [--figures] [--parts PART,…] [--seconds N] BUILD OUT" >&2
    exit 2
fi
[ $what = gpu-check ] || : "${parts:=steps,largest}"
: "${parts:=$checks}"
BUILD=$(realpath "$1") SOURCE=$(realpath "$(dirname "$0")/..")
SIFR=$BUILD/sifr
mkdir -p "$2" && out=$(realpath "$2") || exit 2
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-gpu.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
export SOURCE BUILD SIFR FAKE SIFR_TEST_GPU=${FAKE:+fake} CMOCKA_MESSAGE_OUTPUT=stdout
: "${SIFR_TEST_GPU:=1}"

# Of the checks: 510 together.
limit_of() {
    case $1 in
    look) echo 15 ;;
    bits) echo 40 ;;
    ops) echo 90 ;;
    golden) echo 70 ;;
    runs) echo 30 ;;
    program) echo 40 ;;
    ranks) echo 40 ;;
    repeat) echo 50 ;;
    sanitizer) echo 80 ;;
    speed) echo 55 ;;
    steps) echo 300 ;;
    largest) echo 210 ;;
    *) return 1 ;;
    esac
}
for part in ${parts//,/ }; do
    limit_of "$part" >/dev/null || { echo "gpu-check.sh: no part $part" >&2 && exit 2; }
done

gpu=$("$SIFR" doctor --json 2>/dev/null |
    sed -n '/"gpus": \[$/,/\]/s/^ *"name": "\(.*\)",*$/\1/p' | head -n 1)
[ "$FAKE" ] && gpu="none: a driver that a test plays"
if [ -z "$gpu" ]; then
    echo "gpu-check: no GPU that this program can use; sifr doctor says:"
    "$SIFR" doctor 2>&1 | grep -iE 'gpu|cuda|driver' || :
    exit 0
fi

# In a JSON string.
quoted() { printf '"%s"' "$(printf %s "$1" | tr '\000-\037' ' ' | sed 's/[\\"]/\\&/g')"; }

# Sets result and why.
run_part() { # PART SECONDS
    local code=0
    why=''
    if [ "$2" -le 0 ]; then
        result="not run" why="no time was left"
        return
    fi
    mkdir "$work/$1"
    (cd "$work/$1" && exec timeout -k 5 "$2" bash "$SOURCE/scripts/gpu-parts.sh" "$1") \
        >"$out/$1.log" 2>&1 </dev/null || code=$?
    rm -rf "${work:?}/$1"
    why=$(sed -n 's/^note: //p' "$out/$1.log" | tail -n 1)
    case $code in
    0) result=passed ;;
    77) result="not run" ;;
    124 | 137) result="no end within $2 s" failed=1 ;;
    *) result=failed failed=1 ;;
    esac
}

# The rows of a part's tables, as JSON.
rows_of() { # LOG
    grep '^| ' "$1" 2>/dev/null | sed 's/[\\"]/\\&/g; s/^| */["/; s/ *|$/"]/; s/ *| */", "/g' |
        paste -sd ',' -
}

begun=$SECONDS failed=0 table='' json='' more=''
for part in ${parts//,/ }; do
    limit=$(limit_of "$part") left=$((seconds - (SECONDS - begun))) start=$SECONDS
    [ -z "$FAKE" ] || limit=$((3 * limit)) # it plays beside other tests
    [ "$limit" -le "$left" ] || limit=$left
    rm -f "$out/$part.log"
    run_part "$part" "$limit"
    took=$((SECONDS - start))
    table="$table| $part | $result | $took | $why |"$'\n'
    json="$json${json:+,}"$'\n'"  {\"part\": \"$part\", \"result\": \"$result\","
    json="$json \"seconds\": $took,"
    json="$json \"why\": $(quoted "$why"), \"rows\": [$(rows_of "$out/$part.log")]}"
    ! grep -q '^|' "$out/$part.log" 2>/dev/null ||
        more="$more"$'\n'"## $part"$'\n'"$(grep -E '^(\||$)' "$out/$part.log")"$'\n'
done
{
    echo "{\"gpu\": $(quoted "$gpu"), \"date\": \"$(date -u +%Y-%m-%d)\","
    echo " \"sifr\": $(quoted "$("$SIFR" --version | head -n 1)"),"
    echo " \"parts\": [$json"
    echo ' ]}'
} >"$out/$what.json"
{
    echo "$gpu, $(date -u +'%Y-%m-%d %H:%M UTC')"
    echo
    echo '| part | result | seconds | |'
    echo '|---|---|---|---|'
    echo -n "$table"
    echo -n "$more"
} | tee "$out/$what.md"
exit $failed
