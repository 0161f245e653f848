#!/bin/bash
# Runs a pack on a machine with a GPU that is lent for minutes, in one command:
#     gpu-rent.sh PACK RESULTS [OPTION…]
# Unpacks PACK into a fresh folder below ${TMPDIR:-/tmp}, runs its gpu-check with the options (those
# of gpu-check.sh) and RESULTS as the folder of results, and ends with its exit code. Needs nothing
# of a build. The recipe, from the root of the tree:
#     make gpu-pack                                         # here: build/gpu.tar.zst
#     scripts/gpu-rent.sh build/gpu.tar.zst "$OUT"          # there; git ignores build/, so the pack
#                                                           # travels beside the tree, by name
set -u
[ "${1:-}" != --help ] || { sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0" && exit; }
if [ $# -lt 2 ] || [ ! -f "$1" ]; then
    echo "usage: gpu-rent.sh PACK RESULTS [OPTION…]; PACK is what \`make gpu-pack\` makes, and OPTION" \
        "--figures, --parts PART,…, --seconds N or --fake, as for gpu-check.sh" >&2
    exit 2
fi
mkdir -p "$2" || exit 2
pack=$(realpath "$1") results=$(realpath "$2")
shift 2
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-rent.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
# A tar without zstd beside it reads no pack; cmake (3.25) does.
tar xf "$pack" 2>tar.log || cmake -E tar xf "$pack" 2>>tar.log || {
    cat tar.log >&2
    echo "gpu-rent.sh: $pack is not unpacked: neither tar with zstd nor cmake can" >&2
    exit 2
}
# A signal reaches the check, which ends what it has begun. Then its programs may go.
gpu/gpu-check "$results" "$@" &
check=$!
trap 'kill "$check" 2>/dev/null' HUP INT TERM
code=0
wait "$check" || code=$?
while kill -0 "$check" 2>/dev/null; do wait "$check" || code=$?; done
exit $code
