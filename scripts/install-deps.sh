#!/bin/sh
# Installs what is missing of Debian's packages, with one apt call: install-deps.sh [SET]…
#   build  what compiling the program needs (the default)
#   demo   the text that the demo trains on
#   test   what the suite needs besides: the test library, the second compiler, its sanitizers
#   bench  what measuring needs besides; the peers themselves come from PyPI
#   other-mpi  both MPIs, to test with the one that is not the system's own
# Says nothing, and takes no time to speak of, when all is there.
set -eu

build="gcc libc6-dev make cmake ninja-build pkg-config libdnnl-dev libjansson-dev libpcre2-dev
    libutf8proc-dev libxxhash-dev libhwloc-dev liburing-dev libopenmpi-dev openmpi-bin"
demo="bible-kjv bible-kjv-text"
bench="python3 python3-venv python3-dev g++ fio libaio-dev"
other_mpi="libmpich-dev mpich libopenmpi-dev openmpi-bin"
test="libcmocka-dev g++ clang libclang-rt-14-dev shellcheck python3-yaml iproute2"

wanted=
[ $# -gt 0 ] || set -- build
for set in "$@"; do
    case $set in
    build) wanted="$wanted $build" ;;
    demo) wanted="$wanted $demo" ;;
    test) wanted="$wanted $test" ;;
    bench) wanted="$wanted $bench" ;;
    other-mpi) wanted="$wanted $other_mpi" ;;
    *)
        echo "install-deps.sh: no such set: $set; there are build, demo, test, bench and other-mpi" >&2
        exit 2
        ;;
    esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "install-deps.sh: this is no Debian: nothing installed; needed are the equivalents of:" \
        $wanted >&2
    exit 0
fi

# shellcheck disable=SC2086 # a list of words
present=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' $wanted 2>/dev/null || :)
missing=
for package in $wanted; do
    case "
$present
" in
    *"
$package installed
"*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install-deps.sh: missing:$missing; there is no sudo here, so as root run:" \
            "apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    root=sudo
fi

echo "installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Lists that cannot all be fetched may still do; the installation tells.
$root apt-get update -qq >"$log" 2>&1 || :
# shellcheck disable=SC2086
if ! $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    $missing >>"$log" 2>&1; then
    cat "$log" >&2
    echo "install-deps.sh: apt-get failed, see above" >&2
    exit 1
fi
