# label: full
# What goes wrong over ranks, and how it ends: one that is killed, one that hangs, a signal, wrong
# input, a launcher that is not MPI's.
# not under sanitizers (MPI keeps what it took), each MPI, timeout: 600
. "$SOURCE/tests/support/ranks.sh"
trap 'for p in $(ranks_here); do kill -9 $p; done; kill -9 $(jobs -p) 2>/dev/null || :' EXIT
tiny_model
bits() { sha256sum <"$1/model.safetensors"; }
# Processes of this test that are ranks.
ranks_here() {
    local p
    for p in $(pgrep -x sifr || :); do
        [ "$(readlink /proc/$p/cwd 2>/dev/null)" = "$PWD" ] || continue
        if tr '\0' '\n' </proc/$p/environ 2>/dev/null | grep -qE '^(OMPI_COMM_WORLD|PMI)_RANK='; then
            echo $p
        fi
    done
}
rank_pid() { # RANK
    local p
    for p in $(ranks_here); do
        if tr '\0' '\n' 2>/dev/null </proc/$p/environ | grep -qE "^(OMPI_COMM_WORLD|PMI)_RANK=$1\$"; then
            echo $p
            return
        fi
    done
}
# start OPTION…: in the background, as $run; returns when it has done some steps
start() {
    rm -rf run
    "$SIFR" train --config ds.json --model model --data text --output run --threads 1 "$@" \
        >out 2>err &
    run=$!
    for i in $(seq 300); do
        [ "$(grep -c . run/metrics.csv 2>/dev/null || :)" -gt 3 ] 2>/dev/null && return
        kill -0 $run 2>/dev/null || fail "it ended before its first steps"
        sleep 0.1
    done
    fail "no steps after 30 s"
}
# finish CODE SECONDS WHAT: the run ends with that code in less than that time
finish() {
    local begun=$SECONDS code=0
    wait $run || code=$?
    [ "$code" = "$1" ] || fail "$3: exit code $code, not $1"
    [ $((SECONDS - begun)) -lt "$2" ] || fail "$3: ended after $((SECONDS - begun)) s only"
    echo "$3: exit code $code after $((SECONDS - begun)) s"
    for i in $(seq 50); do
        [ "$(ranks_here)" ] || return 0
        sleep 0.1
    done
    fail "$3: ranks are left"
}
nothing_saved() { [ -z "$(ls -d run/checkpoint-* run/model.safetensors 2>/dev/null)" ]; }

# --- a rank is killed in the middle ---
for rank in 0 2; do
    start --ranks 3 --max-steps 1000000
    kill -9 "$(rank_pid $rank)"
    finish 4 30 "rank $rank killed"
    nothing_saved || fail "rank $rank killed: saved nevertheless"
    grep -qE "rank $rank\b" err || fail "rank $rank killed: not named"
done

# --- a rank hangs ---
start --ranks 3 --max-steps 1000000 --collective-timeout 4
kill -STOP "$(rank_pid 1)"
finish 4 30 "rank 1 stopped"
nothing_saved || fail "rank 1 stopped: saved nevertheless"
grep -q 'not done after 4 s .*(sifr.collective_timeout)' err || fail "rank 1 stopped: no report"
grep 'collective_timeout' err | grep -q 'rank 1' || fail "rank 1 stopped: not named"

# --- a signal to the launcher: saved once, and resumed to the same bits ---
train() { "$SIFR" train --config ds.json --model model --data text --threads 1 "$@"; }
train --output whole --max-steps 100 --ranks 2 >out 2>err || fail "a whole run: exit code $?"
for signal in TERM INT; do
    start --ranks 2 --max-steps 100
    kill -$signal $run
    code=143
    [ $signal = TERM ] || code=130
    finish $code 60 "SIG$signal"
    [ "$(ls -d run/checkpoint-* | wc -l)" = 1 ] || fail "SIG$signal: not one checkpoint"
    [ "$(grep -c "stopped by .* after step" out)" = 1 ] || fail "SIG$signal: not said once"
    train --output run --max-steps 100 --ranks 2 --resume >out 2>err || fail "resume: exit code $?"
    grep -q '^resumed from checkpoint-' out || fail "SIG$signal: not resumed"
    [ "$(bits run)" = "$(bits whole)" ] || fail "SIG$signal: other bits after resuming"
done

# --- under a foreign launcher that waits: a signal to it saves; the one that it sends when a rank is
# lost does not. Open MPI's waits that time, sends SIGTERM, and waits as long again before SIGKILL ---
no_ranks_within() { # SECONDS WHAT
    for i in $(seq $(($1 * 10))); do
        [ "$(ranks_here)" ] || { kill -9 $run; wait $run 2>/dev/null || :; return 0; }
        sleep 0.1
    done
    fail "$2: ranks are left after $1 s"
}
if [ ! "$mpich" ]; then
    printf '#!/bin/sh\nexec %s "$@"\n' \
        "$launcher --mca odls_base_sigkill_timeout 10 -n 2 $SIFR" >patient
    chmod +x patient
    SIFR=./patient start --max-steps 1000000
    kill -TERM $run
    no_ranks_within 40 "a foreign launcher's signal" # whose last lines mpirun drops
    [ "$(ls -d run/checkpoint-* | wc -l)" = 1 ] || fail "a foreign launcher's signal: not saved"
    SIFR=./patient start --max-steps 1000000
    kill -9 "$(rank_pid 1)"
    no_ranks_within 30 "a foreign launcher lost a rank"
    nothing_saved || fail "a foreign launcher lost a rank: saved nevertheless"
fi

# --- wrong input: refused once, before anything is loaded ---
# refused TEXT COMMAND…
refused() {
    local text=$1 code=0
    shift
    rm -rf run
    timeout 60 "$@" --model absent --data absent --output run >out 2>err || code=$?
    [ "$code" = 2 ] || fail "$*: exit code $code"
    [ "$(grep -c '^sifr train: ' err)" = 1 ] || fail "$*: not said once"
    grep '^sifr train: ' err | grep -q "$text" || fail "$*: no '$text'"
    [ ! -e run ] || fail "$*: the output is there"
}
echo '{"zero_optimization": {"stage": 4}, "sifr": {"max_steps": 1}}' >stage.json
echo '{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1,
 "gradient_accumulation_steps": 3, "sifr": {"max_steps": 1}}' >batch.json
echo '{"bf16": {"enabled": true}, "fp16": {"enabled": true}, "sifr": {"max_steps": 1}}' >both.json
for start in "$SIFR train --ranks 5" "$launcher -n 5 $SIFR train"; do
    refused 'train_batch_size 24 is no multiple of .* 5 ranks' $start --config ds.json
    refused 'zero_optimization.stage' $start --config stage.json
    refused 'train_batch_size 8' $start --config batch.json
    refused 'fp16' $start --config both.json
done
refused 'ranks 4: started as one of 3 ranks already' $launcher -n 3 "$SIFR" train --ranks 4 \
    --config ds.json
refused 'ranks: 0 is not in 1 to 4096' "$SIFR" train --ranks 0 --config ds.json
refused "stage.json: line 1: .* is not HOST slots=N" "$SIFR" train --hostfile stage.json --config ds.json

# --- a launcher that is not MPI's ---
for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 TORCHELASTIC_RUN_ID=x "$SIFR" train --config ds.json \
        --model model --data text --output run >>out 2>err.$rank &
done
wait
cat err.0 err.1 >err
[ "$(grep -c . err)" = 1 ] || fail "torchrun: not one line"
grep -q '^sifr train: started by torchrun, .* as one of 2 ranks; .* `mpirun -n 2 sifr train' err ||
    fail "torchrun: how to start is not said"
# Variables that are left over, whose number is not the first one's: this process has no peers. The
# first rank of another job, which starts on this host at the same time, does not speak for it.
mkdir other
for left in 'RANK=1 LOCAL_RANK=1 WORLD_SIZE=2' 'OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1' \
    'PMI_SIZE=2 PMI_RANK=1'; do
    (cd other && exec env RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 "$SIFR" train --ranks 3) >log 2>&1 &
    refused 'as one of 2 ranks' env $left "$SIFR" train --config ds.json --ranks 3
    wait
done
if [ ! "$mpich" ]; then # other MPIs may find each other by a library of Slurm's
    for task in 0 1; do
        # else two launchers would train into one folder
        SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=$task "$SIFR" train --config ds.json \
            --ranks 4 --model model --data text --output run >>out 2>err.$task &
    done
    wait
    cat err.0 err.1 >err
    [ "$(grep -c . err)" = 1 ] || fail "srun: not one line"
    grep -q '^sifr train: started by srun without PMIx, .* as one of 2 ranks' err.0 ||
        fail "srun: not said by the first task"
    # srun ends the others when the first leaves, and takes the highest exit code: 143 would put the
    # job back into the queue, again and again
    code=0
    SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 "$SIFR" train --config ds.json \
        --model model --data text --output run >>out 2>err &
    for i in $(seq 100); do # until it waits
        ignored=$(sed -n 's/^SigIgn:\t//p' /proc/$!/status 2>/dev/null || :)
        [ $((0x${ignored:-0} & 0x4000)) = 0 ] || break
        sleep 0.01
    done
    kill -TERM $!
    wait $! || code=$?
    [ $code = 2 ] || fail "srun: a task that is ended while it waits has the exit code $code"
fi
