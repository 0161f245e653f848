# What `sifr train --ranks` leaves in TMPDIR and /dev/shm: nothing after its end and after signals;
# after SIGKILL what the next run removes, beside the files of a run that lives. And the launcher
# alone is killed: its ranks hold the output folder for some seconds, which the next start waits for.
# not under sanitizers (MPI keeps what it took), each MPI, timeout: 300
. "$SOURCE/tests/support/ranks.sh"
. "$SOURCE/tests/support/until_it.sh"
family() { for p in $(pgrep -P "$1"); do echo "$p"; family "$p"; done; }
tiny_model
export TMPDIR=$(mktemp -d /tmp/sifr-XXXXXX) # a short path: see src/cli/launch/session.h
ranks= # without a launcher
clean_up() {
    for p in $(jobs -p); do kill -9 $(family $p) $p 2>/dev/null || :; done
    kill -9 $ranks 2>/dev/null || :
    rm -rf "$TMPDIR"
}
trap clean_up EXIT
memory=/dev/shm/sifr-$(id -u) # other runs of this user may have their folders there
train() { # FOLDER OPTION…
    local folder=$1
    shift
    exec "$SIFR" train --config ds.json --model model --data text --output "$folder" --threads 1 \
        --ranks 2 "$@"
}
steps() { [ "$(grep -c . "$1/metrics.csv" 2>/dev/null || :)" -gt 3 ]; }
# start FOLDER: in the background, as $run, without an end; returns when it has done some steps
start() {
    (train "$1" --max-steps 1000000) >"$1.log" 2>&1 &
    run=$!
    until_it steps "$1"
}
# The folders that the run PID named to its ranks, one a line.
folders() {
    local p
    for p in $(family "$1"); do
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null || :
    done | sed -nE 's/^(OMPI|PRTE)_MCA_((or|pr)te_tmpdir_base|btl_[a-z]+_backing_directory)=//p' |
        sort -u
}
expect_there() { for f in $1; do [ -d "$f" ] || fail "$2: $f is not there"; done; }
expect_gone() { for f in $1; do [ ! -e "$f" ] || fail "$2: $f is left"; done; }
expect_empty() { [ -z "$(ls "$TMPDIR")" ] || fail "$1: $(find "$TMPDIR") is left"; }
# ended WHAT PID…: returns when they have; SIGKILL takes its time on a busy machine
ended() {
    local what=$1 p
    shift
    for p; do
        for i in $(seq 300); do
            grep -q '^State:.[^ZX]' /proc/$p/status 2>/dev/null || continue 2
            sleep 0.1
        done
        fail "$what: process $p lives on"
    done
}
# stop NAME: asks the run to save and stop
stop() {
    local code=0
    kill -TERM $run
    wait $run || code=$?
    [ $code = 143 ] || { cat "$1.log"; fail "$1: exit code $code"; }
}

(train short --max-steps 2) >out 2>err || fail "exit code $?"
expect_empty "a run to its end"

# --- all are killed; one that lives keeps its own ---
start killed
killed=$(folders $run) all="$(family $run) $run"
kill -9 $all
ended "killed" $all
start living
living=$(folders $run)
if [ ! "$mpich" ]; then
    [ "$killed" ] && [ "$living" ] || fail "the launcher has no folders of its own"
    [ "$(echo "$killed" "$living" | tr ' ' '\n' | grep -c "^$TMPDIR/sifr-")" = 2 ] ||
        fail "not in TMPDIR: $killed $living"
    # None elsewhere, where Open MPI has them by itself.
    for p in $(family $run); do
        for f in $( (readlink /proc/$p/fd/*; sed 's/^[^/]*//' /proc/$p/maps) | sort -u |
            grep -E '/(ompi\.|vader_segment)' | grep -v '(deleted)' || :); do
            case $f in "$TMPDIR"/sifr-* | "$memory"/run-*) ;; *) fail "$f is elsewhere" ;; esac
        done
    done
fi
expect_gone "$killed" "killed"
expect_there "$living" "living"
(train beside --max-steps 2) >out 2>err || fail "beside another run: exit code $?"
expect_there "$living" "living, beside another run"
stop living
expect_gone "$living" "stopped"
expect_empty "the last run"

# --- the launcher is killed, its ranks are not: a start right after it waits for the folder ---
abandon() { # FOLDER: a run there whose launcher is killed, and its ranks, as $ranks, are not
    local p launchers
    start "$1"
    launchers=$run ranks=
    for p in $(family $run); do
        case $(cat /proc/$p/comm) in
        sifr) ranks="$ranks $p" ;;
        sifr-watch) ;;
        *) launchers="$launchers $p" ;;
        esac
    done
    kill -9 $launchers
    ended "the launcher" $launchers
}
waits() { # whether the run $run says that it waits for the folder
    for i in $(seq 600); do
        grep -q "in use by another sifr train.*; waiting up to 10 s" out err && return
        kill -0 $run 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}
met=
for try in 1 2 3; do # ranks may see that their launcher is gone, and end, before they are stopped
    folder=run-$try
    abandon $folder
    if [ "$mpich" ]; then # its ranks end with it
        (train $folder --max-steps 2) >out 2>err || fail "after the launcher was killed: exit code $?"
        break
    fi
    # Stopped, the ranks hold the folder until the next start has met them. Not before the launcher
    # is gone: the system sends SIGHUP to stopped processes that lose their parent.
    kill -STOP $ranks 2>/dev/null || :
    (train $folder --max-steps 2) >out 2>err &
    run=$!
    if waits; then met=yes; fi
    kill -CONT $ranks 2>/dev/null || :
    wait $run && code=0 || code=$?
    if grep -q 'in use by another sifr train; wait' out err; then # a busy machine: more than 10 s
        (train $folder --max-steps 2) >out 2>err && code=0 || code=$?
    fi
    [ $code = 0 ] || fail "after the launcher was killed: exit code $code"
    [ ! "$met" ] || break
done
[ "$mpich$met" ] || fail "a start after the launcher was killed: did not wait for the folder"
[ -e $folder/model.safetensors ] || fail "after the launcher was killed: no model"
ended "ranks without a launcher" $ranks
ranks=
expect_empty "after the launcher was killed"
