# Sourced first by tests of a disk without room: starts the test again in a namespace of its own (77
# where there can be none), with a tmpfs of $1 at disk/. The process in $run is killed at the end.
fail() { echo "FAILED: $1" >&2; cat err >&2 || :; exit 1; }
if [ -z "${INSIDE:-}" ]; then
    unshare -rm mount -t tmpfs none /mnt 2>/dev/null || exit 77
    INSIDE=1 exec unshare -rm bash -eu "$0"
fi
run=
trap 'kill -9 $run 2>/dev/null || :; wait || :' EXIT
mkdir disk
mount -t tmpfs -o size="$1" none disk
