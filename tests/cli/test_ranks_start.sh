# Two ranks by `sifr train --ranks 2`, with whatever MPI sifr opens: the same bits as one, also as
# root, with a /dev/shm of 64 KiB, without network or ssh, and beside a scheduler's hosts; a plan and
# one rank open none.
# not under sanitizers (MPI keeps what it took), each MPI, timeout: 120
. "$SOURCE/tests/support/ranks.sh"
tiny_model
train() { "$SIFR" train --config ds.json --model model --data text --threads 1 --max-steps 4 "$@"; }
bits() { sha256sum <"$1/model.safetensors"; }
train --output one --ranks 1 >out 2>err || fail "--ranks 1: exit code $?"
if grep -q ranks err; then fail "a launcher for one rank"; fi
# MPI is opened for ranks alone, and one line says if that is not possible.
LD_DEBUG=files "$SIFR" plan --config ds.json --model model --world-size 2 >out 2>err || fail "plan: exit code $?"
if grep 'calling init: .*libmpi' err; then fail "a plan opens MPI"; fi
LD_DEBUG=files train --output alone --max-steps 1 >out 2>err || fail "one rank: exit code $?"
if grep 'calling init: .*libmpi' err; then fail "one rank opens MPI"; fi
LD_DEBUG=files "$SIFR" doctor 2>&1 | grep -q 'calling init: .*libmpi' || fail "LD_DEBUG does not tell"
for given in "$PWD/text" off; do
    SIFR_MPI=$given train --output none --ranks 2 >out 2>err && fail "SIFR_MPI=$given: trained"
    [ "$(grep -c . err)" = 1 ] && grep -q '^sifr train: --ranks: SIFR_MPI' err || fail "SIFR_MPI=$given: no line"
    SIFR_MPI=$given train --output none --max-steps 1 >out 2>err || fail "SIFR_MPI=$given: no rank"
    rm -r none
done
train --output two --ranks 2 --json >out 2>err || fail "--ranks 2: exit code $?"
[ "$(bits two)" = "$(bits one)" ] || fail "two ranks: other bits than one"
grep -q '^sifr train: 2 ranks on this machine' err || fail "not said: ranks"
grep -q '^cores: 2 ranks of this host share [0-9]' err || fail "not said: cores"
grep -q '^bits: the same on 1, 2, 4, 8 ... ranks with this micro batch size (1)' err || fail "not said: bits"
grep -q '"ranks": 2' out || fail "the result does not tell the ranks"

# --- a start that does not come to its end ---
cat >stop.sh <<'END'
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && echo $$ >stopped && kill -STOP $$
exec "$@"
END
sed 's/"sifr": {/"sifr": {"collective_timeout": 3, /' ds.json >late.json
code=0
timeout 60 $launcher -n 2 sh stop.sh "$SIFR" train --config late.json --model model --data text \
    --threads 1 --output late >out 2>err || code=$?
kill -KILL $(cat stopped) 2>/dev/null || :
[ "$code" = 4 ] || [ "$mpich" ] || fail "a stopped rank: exit code $code"
grep -qE '^sifr train: start: rank 0 has waited 3 s .*: rank 1 [(]process [0-9]+[)] is stopped' err ||
    fail "a stopped rank is not named"

# ended WHY WORD...: the last line says that the launcher failed by itself, and why
ended() {
    local why=$1
    shift
    code=0
    timeout 60 "$@" "$SIFR" train --config ds.json --model model --data text --output none \
        --ranks 2 >out 2>err || code=$?
    [ "$code" = 1 ] || fail "$why: exit code $code"
    tail -n 1 err | grep -qE "^sifr train: .* failed by itself with exit code 1, .*; $why" ||
        fail "$why: not the last line"
}
[ "$mpich" ] || ended 'OMPI_MCA_ess is set' env OMPI_MCA_ess=pmi PMIX_RANK=0

# A container: no network but lo, hardly any /dev/shm, no ssh; and a scheduler's variables.
if ! unshare --mount --net true 2>/dev/null; then
    echo "no namespaces for this user: the container is not tested"
    exit 0
fi
mkdir bin
for program in $(dirname "${launcher%% *}")/mpirun* orted hydra_pmi_proxy; do
    found=$(command -v "$program") && ln -sf "$found" bin/
done
export SLURM_JOB_ID=7 SLURM_JOBID=7 SLURM_NNODES=2 SLURM_JOB_NUM_NODES=2 \
    SLURM_NODELIST=other1,other2 SLURM_JOB_NODELIST=other1,other2 SLURM_TASKS_PER_NODE='2(x2)'
unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
cat >container.sh <<'END'
mount -t tmpfs -o size=64k tmpfs /dev/shm
ip link set lo up
PATH=$PWD/bin exec "$@"
END
[ "$mpich" ] || ended 'no loopback interface is up' unshare --net
unshare --mount --net bash -eu container.sh "$SIFR" train --config ds.json --model model --data text \
    --threads 1 --max-steps 4 --output three --ranks 4 >out 2>err || fail "container: exit code $?"
[ "$(bits three)" = "$(bits one)" ] || fail "container: other bits"
