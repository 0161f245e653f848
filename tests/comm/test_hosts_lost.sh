# label: full
# A rank on another host that dies, a host that is cut off, and two hosts of three between which
# alone nothing passes: named within seconds by the ranks that are left, whose exit code is 4, also
# where they were asked to save; those that are cut off end too. Where the launcher leaves the others
# alone, each of them names the rank that died, not one that ended for it and not MPI's error. Hosts
# are network namespaces.
# not under sanitizers (MPI keeps what it took), each MPI, timeout: 120
. "$SOURCE/tests/support/ranks.sh"
. "$SOURCE/tests/support/namespaces.sh"
hosts 5
tiny_model
# start HOST…: in the background, as $run, what it says in `out`; returns after a step
start() {
    rm -rf run out
    printf '%s slots=1\n' "$@" >hostfile
    on $1 "$SIFR" train --config ds.json --model model --data text --threads 1 --output run \
        --hostfile hostfile --max-steps 1000000 >out 2>&1 &
    run=$!
    for i in $(seq 300); do grep -q '^step 1/' out && break || sleep 0.1; done
    grep -q '^step 1/' out || fail "no step after 30 s"
    sleep 1
    begun=$SECONDS
}
# ranks HOST: their processes there
ranks() {
    for process in $(ip netns pids "$1"); do
        tr '\0' ' ' 2>/dev/null </proc/$process/cmdline | grep -q "^$SIFR train .*--output" || continue
        tr '\0' '\n' </proc/$process/environ | grep -qE '^(OMPI_COMM_WORLD|PMI)_RANK=' && echo $process
    done
}
says() { # SECONDS REGEX WHAT
    while ! grep -qE "$2" out; do
        [ $((SECONDS - begun)) -le "$1" ] || fail "$3: not said after $1 s: $2"
        sleep 0.1
    done
}
is_over() { # SECONDS HOST WHAT
    while [ "$(ranks "$2")" ]; do
        [ $((SECONDS - begun)) -le "$1" ] || fail "$3: ranks of $2 still run after $1 s"
        sleep 0.1
    done
}
trap 'kill -9 $(jobs -p) 2>/dev/null || :' EXIT

start h1 h2 # the launcher ends what is left; where it lets them speak, they name the rank
kill -9 $(ranks h2)
is_over 10 h1 "killed"
code=0
wait $run || code=$?
[ "$code" = 4 ] || fail "killed: exit code $code"
# MPICH's launcher may end the others first; it names the host itself.
said='rank 1 (on host h2 has died|was ended by signal 9)|a rank was ended by signal 9'
grep -qE "$said${mpich:+|RUNNING AT h2}" out ||
    fail "killed: not said"

# Two ranks a host, by a launcher that ends nothing on the other one; a rank that does not watch that
# host knows what its first one has found. MPI's own error may come before that.
alone="--oversubscribe --bind-to none --mca orte_abort_on_non_zero_status 0 --enable-recovery"
printf '%s slots=2\n' h1 h2 >hostfile
[ ! "$mpich" ] || { alone=-disable-auto-cleanup && printf '%s:2\n' h1 h2 >hostfile; }
left() { # RANK: killed, on h2
    rm -rf run out
    on h1 ${launcher%% *} $alone --hostfile hostfile -n 4 "$SIFR" train --config ds.json --model model \
        --data text --threads 1 --output run --max-steps 1000000 >out 2>&1 &
    run=$!
    for i in $(seq 300); do grep -q '^step 1/' out 2>/dev/null && break || sleep 0.1; done
    grep -q '^step 1/' out || fail "left: no step after 30 s"
    begun=$SECONDS
    killed=
    for process in $(ranks h2); do # a watcher may stand beside a rank
        tr '\0' '\n' 2>/dev/null </proc/$process/environ |
            grep -qE "^(OMPI_COMM_WORLD|PMI)_RANK=$1$" && killed+=" $process"
    done
    kill -9 $killed 2>/dev/null || :
    for rank in 0 1; do says 8 "^sifr train: rank $rank: .*: rank [23] on host h2 has died" "left"; done
    is_over 10 h1 "left"
    kill -9 $run 2>/dev/null || :
    wait $run 2>/dev/null || :
}
left 2
left 3

# Two runs side by side; no launcher notices soon that a host is cut off.
start h3 h4 h5
mv out out.apart
mv run run.apart
apart=$run
start h1 h2
ip -n h4 route add blackhole 10.77.0.5 # h3 still reaches both
ip -n h5 route add blackhole 10.77.0.4
ip link set v2 down
# "Save and stop", in the launcher's word.
if [ "$mpich" ]; then kill -TERM $(ranks h1); else kill -USR2 $(ranks h1); fi
says 12 'rank 0: asked to stop by .*, and could not save: .*rank 1 on host h2 has not answered for 7 s' cut
says 12 'that host is down, or it or this one [(]h1[)] is cut off' cut
is_over 25 h1 "cut off"
is_over 25 h2 "cut off"
mv out.apart out
# Who has found it first tells the others; MPICH's launcher ends what is left after the first.
h4='rank 2 on host h5 has not answered for 7 s while rank 1 waits for it: that host is down, or it or this one [(]h4[)]'
h5='rank 1 on host h4 has not answered for 7 s while rank 2 waits for it: that host is down, or it or this one [(]h5[)]'
told='rank 2 on host h5 has not answered h4 for 7 s|rank 1 on host h4 has not answered h5 for 7 s'
says 12 "$h4|$h5|$told|host h[45] has had no answer from this one [(]h[45][)] for 7 s" apart
for host in h3 h4 h5; do is_over 15 $host "apart"; done
code=0
wait $apart || code=$?
[ "$code" = 4 ] || fail "apart: exit code $code"
