# Signals to `sifr train --ranks 2`: saved, the exit code, sifr's own line as the last one and none
# of the launcher's; a terminal that hangs up, nohup, and a signal before the first step.
# not under sanitizers (MPI keeps what it took), each MPI, timeout: 300
. "$SOURCE/tests/support/ranks.sh"
trap 'kill -9 $(jobs -p) 2>/dev/null || :' EXIT
tiny_model
# start: in the background, as $run, with all that it says in `out`
start() {
    rm -rf run out # else what the last run said is taken for what this one says
    "$@" "$SIFR" train --config ds.json --model model --data text --output run --threads 1 \
        --ranks 2 --max-steps 1000000 >out 2>&1 &
    run=$!
}
steps() { # returns when it has done some
    for i in $(seq 300); do
        [ "$(grep -c . run/metrics.csv 2>/dev/null || :)" -gt 3 ] 2>/dev/null && return
        sleep 0.1
    done
    fail "no steps after 30 s"
}
# Where each process of the run is: a run that does not begin has shown itself once in 60 only.
stacks() {
    local processes
    ps -o pid,ppid,stat,wchan:24,etime,args -e |
        grep -E "PID|mpi(run|exec)|prte|orted|hydra|$SIFR " >&2 || :
    processes=$(pgrep -f "^$SIFR" || :)
    for process in $processes; do
        timeout 20 gdb -p "$process" -batch -ex "thread apply all bt 12" 2>&1 |
            grep -E '^(Thread|#)' >&2 || cat /proc/$process/task/*/wchan >&2 || :
    done
}
finish() { # CODE WHAT
    local code=0
    wait $run || code=$?
    [ "$code" = "$1" ] || fail "$2: exit code $code, not $1"
    if grep -E '^(--------|mpi(run|exec)|\[|=)' out; then fail "$2: the launcher's lines show"; fi
}
for pair in INT:130 TERM:143 HUP:129; do
    start
    steps
    kill -${pair%:*} $run
    if [ $pair = TERM:143 ]; then sleep 0.015 && kill -TERM $run; fi # as Slurm does: one request
    finish ${pair#*:} "SIG${pair%:*}"
    tail -n 1 out | grep -q '^stopped by .* after step .*saved, continue with --resume' ||
        fail "SIG${pair%:*}: sifr's line is not the last one"
    [ "$(ls -d run/checkpoint-* | wc -l)" = 1 ] || fail "SIG${pair%:*}: not one checkpoint"
done

start # a signal before the first step, or about it
for i in $(seq 600); do grep -qs '^cores: ' out && break || sleep 0.05; done
grep -q '^cores: ' out || {
    stacks
    fail "early: ranks have not begun after 30 s"
}
kill -TERM $run
finish 143 "early"
ended='ended by SIGTERM, without|rank [01] was ended by signal 15' # MPICH's ranks say it themselves
tail -n 1 out | grep -qE "^(sifr train: ($ended)|stopped by .* after step)" ||
    fail "early: sifr's line is not the last one"

start nohup
steps
kill -HUP $run
sleep 1
kill -0 $run || fail "nohup: ended by SIGHUP"
kill -TERM $run
finish 143 "nohup and SIGTERM"
