#!/bin/bash
# Whether this tree computes and writes the same bits as another commit:
#     compare-bits.sh [--only TOPIC]… [--keep DIR | --built BASE_BUILD THIS_BUILD] BASE
# Builds BASE in a worktree of its own and this tree as it is. Both programs do the same runs on this
# machine, one beside the other; what they leave is compared: weights, states, checkpoints, figures,
# texts, exported files, plans. Topics are the files of scripts/compare-bits/. Models, tokenizers and
# rows are those that BASE's program makes, or tests' own. Prints what differs; exit code 1 where
# any bit differs, 3 where only messages do. --keep leaves both builds in DIR for the next call;
# --built takes the programs of two builds that are there.
set -eu
shopt -s failglob # a folder of cases that moved is no topic without runs
tree=$(cd "$(dirname "$0")/.." && pwd)
parts=$tree/scripts/compare-bits
topics=(zero optimizers objectives classifiers adapters families stages transports gpu infer files
    imports data plan messages)
usage() {
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    echo "Topics: ${topics[*]}"
    exit 2
} >&2
only=() keep='' built=()
while [ $# -gt 1 ]; do
    case $1 in
    --only) only+=("$2") && shift ;;
    --keep) keep=$(realpath -m "$2") && shift ;;
    --built) built=("$(realpath "$2")" "$(realpath "$3")") && shift 2 ;;
    *) usage ;;
    esac
    shift
done
if [ $# != 1 ] || [ "${1#-}" != "$1" ]; then usage; fi
for topic in "${only[@]}"; do [ -f "$parts/$topic.sh" ] || usage; done
base=$(git -C "$tree" rev-parse --verify "$1^{commit}")
work=$(mktemp -d "${TMPDIR:-/tmp}/sifr-bits.XXXXXX")
builds=${keep:-$work}
clean() {
    [ "$keep" ] || git -C "$tree" worktree remove --force "$builds/tree" 2>/dev/null || :
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM
# shellcheck source-path=SCRIPTDIR source=compare-bits/common.sh
. "$parts/common.sh"
build_both
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# shellcheck source-path=SCRIPTDIR source=compare-bits/made.sh
. "$parts/made.sh"
for topic in "${only[@]:-${topics[@]}}"; do
    begun=$SECONDS before=$((same + different + spoken))
    # shellcheck disable=SC1090 # one of the topics
    . "$parts/$topic.sh"
    echo "$topic: $((same + different + spoken - before)) runs in $((SECONDS - begun)) s"
done
echo "$same the same, $different different, $spoken messages differ, $skipped topics skipped:" \
    "$(git -C "$tree" rev-parse --short HEAD) beside ${base::7}; $SECONDS s"
[ $different = 0 ] || exit 1
[ $spoken = 0 ] || exit 3
