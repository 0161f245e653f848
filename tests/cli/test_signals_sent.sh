# Signals that do not go through `sifr train --ranks`: to a launcher that a person or a script
# started, to one rank, to every process of a run, to a container's first process. All ranks agree
# on them at the next step: one checkpoint, the exit code of the signal, the same bits by --resume.
# not under sanitizers (MPI keeps what it took), each MPI, timeout: 300
. "$SOURCE/tests/support/ranks.sh"
. "$SOURCE/tests/support/until_it.sh"
family() { for p in $(pgrep -P "$1"); do echo "$p"; family "$p"; done; }
trap 'for p in $(jobs -p); do kill -9 $(family $p) $p 2>/dev/null || :; done' EXIT
tiny_model
train="train --config ds.json --model model --data text --threads 1"
# start COMMAND…: in the background, as $run; returns when it has done some steps
start() {
    rm -rf run
    "$@" $train --output run --max-steps 1000000 >out 2>err &
    run=$!
    until_it steps
}
steps() {
    kill -0 $run || fail "it ended before its first steps"
    [ "$(grep -c . run/metrics.csv 2>/dev/null || :)" -gt 3 ]
}
# The process of a rank; its watch under MPICH, which has the same variables, has another name.
rank() {
    for p in $(family $run); do
        [ "$(cat /proc/$p/comm)" = "${2:-sifr}" ] || continue
        tr '\0' '\n' </proc/$p/environ | grep -qE "^(OMPI_COMM_WORLD|PMI)_RANK=$1\$" && echo $p
    done
}
# saved CODE[/OR] WHAT BY: the run ends with such a code, one checkpoint and one line about it
saved() {
    local code=0
    wait $run || code=$?
    [ $code = ${1%/*} ] || [ $code = ${1#*/} ] || fail "$2: exit code $code, not $1"
    [ "$(ls -d run/checkpoint-* | wc -l)" = 1 ] || fail "$2: not one checkpoint"
    [ "$(grep -c 'stopped by .* after step .*; saved' out)" = 1 ] || fail "$2: not said once"
    grep -q "stopped by ${3:-}" out || fail "$2: not by $3"
    echo "$2: $(grep -o 'stopped by .*;' out)"
}
front="$SIFR"
mpirun="$launcher -n 2 $SIFR"
with_ranks() { "$front" "$@" --ranks 2; }

# --- a launcher that is not sifr's: what it passes on ---
passed="USR1:138 USR2:140" # it ends ranks by others
[ ! "$mpich" ] || passed="USR1:138 TERM:143 INT:130"
for pair in $passed; do
    start $mpirun
    kill -${pair%:*} $run
    saved ${pair#*:}${mpich:+/0} "SIG${pair%:*} to the launcher" "SIG${pair%:*} " # MPICH's says 0 at times
done
step=$(sed -n 's/.* after step \([0-9]*\) .*/\1/p' out)
$mpirun $train --output run --max-steps $((step + 5)) --resume >out 2>err || fail "resume: exit code $?"
grep -q '^resumed from checkpoint-' out || fail "not resumed"
"$SIFR" $train --output whole --max-steps $((step + 5)) >out 2>err || fail "a whole run: exit code $?"
[ "$(bits run)" = "$(bits whole)" ] || fail "other bits after resuming"

# What ends it ends the ranks too, saved or not.
ranks_here() {
    for p in $(pgrep -x sifr || :); do
        [ "$(readlink /proc/$p/cwd 2>/dev/null)" != "$PWD" ] || return 0
    done
    return 1
}
start $mpirun
kill -$([ "$mpich" ] && echo USR2 || echo TERM) $run
wait $run && fail "a signal that ends the launcher: exit code 0" || :
for i in $(seq 300); do ranks_here && sleep 0.1 || break; done
! ranks_here || fail "a signal that ends the launcher: ranks are left"

# --- one rank of 4 ---
start $launcher -n 4 "$SIFR"
kill -USR1 $(rank 3)
saved 138 "SIGUSR1 to rank 3" "SIGUSR1 "
start $launcher -n 4 "$SIFR"
kill -TERM $(rank 0)
saved 143 "SIGTERM to rank 0" "SIGTERM "

# --- of --ranks ---
# start_front: as start, with --ranks; by exec, so that $run is sifr itself
start_front() {
    rm -rf run
    "$SIFR" $train --output run --max-steps 1000000 --ranks 2 >out 2>err &
    run=$!
    until_it steps
}
for name in sifr ${mpich:+sifr-watch}; do
    start_front
    kill -TERM $(rank 1 $name)
    saved 143 "SIGTERM to rank 1's $name of --ranks" "a signal "
    ! grep -E '^(--------|mpi(run|exec)|=)' err || fail "the launcher's lines show"
done
start_front
kill -HUP $(rank 1)
saved 129 "SIGHUP to rank 1 of --ranks" "SIGHUP "
start_front
kill -USR1 $run
saved 138 "SIGUSR1 to --ranks" "a signal "
start_front # as systemd and a scheduler at the time limit
kill -TERM $run $(family $run)
saved 143 "SIGTERM to all processes of --ranks" "a signal "
if [ ! "$mpich" ]; then
    start_front
    kill -TERM $(pgrep -P $run)
    saved 143 "SIGTERM to the launcher of --ranks" "a signal "
fi

# --- a container's first process, which the kernel keeps from signals that it does not catch ---
if unshare --fork --pid true 2>/dev/null; then
    start unshare --fork --pid "$SIFR"
    kill -TERM $(pgrep -P $run)
    saved 143 "SIGTERM to a first process" "SIGTERM "
    mkfifo never
    unshare --fork --pid "$SIFR" tokenizer encode --tokenizer tok <>never >out 2>err &
    run=$!
    until_it pgrep -P $run
    first=$(pgrep -P $run)
    for i in $(seq 300); do # it may not be there yet, and loses it
        kill -TERM $first 2>/dev/null && sleep 0.1 || break
    done
    kill -KILL $first 2>/dev/null || :
    code=0
    wait $run || code=$?
    [ $code = 143 ] || fail "a first process that waits: exit code $code"
fi
