# Sourced by tests of a mesh of 2 stages x 2 replicas x 2 shards whose ranks are killed or stopped.
. "$SOURCE/tests/support/stage_runs.sh"
trap 'for p in $(ranks_here); do kill -9 $p; done; kill -9 $(jobs -p) 2>/dev/null || :; wait || :' EXIT

# Processes of this test that are ranks; the one of a RANK.
ranks_here() {
    local p
    for p in $(pgrep -x sifr || :); do
        [ "$(readlink /proc/$p/cwd 2>/dev/null)" = "$PWD" ] || continue
        if tr '\0' '\n' </proc/$p/environ 2>/dev/null |
            grep -qE "^(OMPI_COMM_WORLD|PMI)_RANK=${1:-}${1:+\$}"; then
            echo $p
        fi
    done
}
# start: ds.json on 8 ranks, in the background, as $run; returns when it has done some steps
start() {
    rm -rf run
    "$SIFR" train --config ds.json --model tied --data store --output run --ranks 8 --threads 1 \
        --max-steps 1000000 >out 2>err &
    run=$!
    for i in $(seq 600); do
        [ "$(grep -c . run/metrics.csv 2>/dev/null || :)" -gt 3 ] 2>/dev/null && return
        kill -0 $run 2>/dev/null || fail "$case: it ended before its first steps"
        sleep 0.1
    done
    fail "$case: no steps after 60 s"
}
place_of() { # RANK
    echo "rank $1: stage $(($1 / 4)), replica $(($1 / 2 % 2)), shard $(($1 % 2))"
}
# lose RANK SIGNAL: all ranks end within 30 s with exit code 4, one line says which rank it was, its
# place, and what it was doing
lose() {
    local begun=$SECONDS code=0
    kill -$2 "$(ranks_here $1)"
    wait $run || code=$?
    [ $code = 4 ] || fail "$case: exit code $code"
    [ $((SECONDS - begun)) -lt 30 ] || fail "$case: ended after $((SECONDS - begun)) s only"
    if [ $2 = KILL ]; then
        grep "rank $1 has died while rank .* waits for it; it was last " err >said ||
            grep "rank $1 has ended while rank .* waits for it" err >said ||
            fail "$case: it is not named"
    else
        grep "not done after .*(sifr.collective_timeout)" err | grep "rank $1 " >said ||
            fail "$case: it is not named"
    fi
    grep -q "$(place_of $1)" said || fail "$case: its place is not named: $(cat said)"
    for i in $(seq 50); do
        [ "$(ranks_here)" ] || return 0
        sleep 0.1
    done
    fail "$case: ranks are left"
}
