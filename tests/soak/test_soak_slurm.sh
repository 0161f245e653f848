# label: soak
# timeout: 900, not under sanitizers, runs alone
# Under a real Slurm of two nodes with two ranks on each, by examples/slurm.sh: ranks that are killed
# are named by all that are left on both nodes within seconds, placement by turns keeps shards on a host, a job that
# makes room saves, comes back into the queue and goes on; each run that ends has one rank's bits. A
# node's memory limited to the plan and 8 % is enough, tokenising and the launcher included.
. "$SOURCE/tests/support/ranks.sh"
. "$SOURCE/tests/support/slurm_nodes.sh"
nodes 2
pmi=pmix other=pmi2
[ ! "$mpich" ] || pmi=pmi2 other=pmix
srun --mpi=list 2>&1 | grep -q $pmi || { echo "skipped: this Slurm has no $pmi" && exit 77; }
tiny_model
sed 's/"max_steps": 10/"max_steps": 400/; s/"sifr": {/"sifr": {"shard_size": 2, /
    s/^ "opt/ "zero_optimization": {"stage": 3}, &/' ds.json >config.json
mkdir bin
ln -s "$SIFR" bin/sifr
export PATH=$PWD/bin:$PATH MODEL=$PWD/model DATA=$PWD/text CONFIG=$PWD/config.json
export OMPI_MCA_btl_tcp_if_include=eth0 SIFR_PMI=$pmi
"$SIFR" train --config ds.json --model model --data text --max-steps 400 --threads 1 \
    --output alone >out 2>err || fail "alone: exit code $?"

# submit NAME OPTION…: the example as job $job, what it says in NAME.log
submit() {
    local name=$1
    shift
    job=$(OUTPUT=$PWD/$name sbatch --parsable --cpus-per-task=1 --output="$PWD/$name.log" \
        --open-mode=append "$@" "$SOURCE/examples/slurm.sh")
}
steps() { # NAME: returns when it has done some
    local i
    for i in $(seq 300); do
        [ "$(grep -c . "$1/metrics.csv" 2>/dev/null || :)" -gt 30 ] 2>/dev/null && return
        sleep 0.2
    done
    cat "$1.log" >&2
    fail "$1: no steps after 60 s"
}
ends() { # NAME: with one rank's bits
    until_state "$job" "COMPLETED" 300
    [ "$(bits "$1")" = "$(bits alone)" ] || fail "$1: other bits than one rank's"
}
submit whole
ends whole
grep -q '^mesh: 2 replicas x 2 shards, replicas between hosts, shards inside a host' whole.log ||
    fail "whole: the mesh: $(cat whole.log)"
echo "the example on 2 x 2: one rank's bits"

SLURM_DISTRIBUTION=cyclic submit turns
ends turns
grep -q 'sifr numbers them host by host' turns.log || fail "by turns: not said: $(cat turns.log)"
grep -q '^mesh: .*, replicas between hosts, shards inside a host' turns.log || fail "by turns: the mesh"
echo "placed by turns: one rank's bits, shards inside a host"

if srun --mpi=list 2>&1 | grep -q $other; then
    own=openmpi another=mpich
    [ ! "$mpich" ] || own=mpich another=openmpi
    SIFR_MPI=$own SIFR_PMI=$other submit other
    until_state "$job" "FAILED" 60
    grep -q "^sifr train: .* with .srun --mpi=$pmi." other.log || fail "$other: $(cat other.log)"
    echo "$other: refused, and $pmi is named"
    # If nothing names an MPI, the plug-in does.
    if [ ! "${SIFR_MPI:-}" ] && SIFR_MPI=$another "$SIFR" doctor --json | grep -q '"launcher": "'; then
        SIFR_PMI=$other submit another
        ends another
        echo "$other: by $another, one rank's bits"
    fi
fi

# kills NAME RANK… : named by all that are left
kills() {
    local name=$1 rank process processes=
    shift
    submit "$name"
    steps "$name"
    for process in $(ip netns pids h1) $(ip netns pids h2); do
        tr '\0' ' ' 2>/dev/null </proc/$process/cmdline | grep -q '^[^ ]*sifr train ' || continue
        rank=$(tr '\0' '\n' 2>/dev/null </proc/$process/environ | sed -n 's/^SLURM_PROCID=//p')
        case " $* " in *" ${rank:-none} "*) processes+=" $process" ;; esac
    done
    kill -9 $processes
    until_state "$job" "FAILED" 20
    for rank in 0 1 2 3; do
        case " $* " in *" $rank "*) continue ;; esac
        grep -qE "^sifr train: rank $rank: .*rank $1 (on host h[12] )?has died while" "$name.log" ||
            fail "killed: rank $1 is not named by rank $rank: $(cat "$name.log")"
    done
}
kills first 1
kills second 3
kills killed 2 3
submit killed # what a user does then
ends killed
echo "ranks killed on a node: named by all that are left, and the next job has one rank's bits"

submit preempted
steps preempted
urgent=$(sbatch --parsable -p first -N 2 --exclusive --output=/dev/null --wrap 'sleep 1')
until_state "$urgent" "COMPLETED" 100
grep -q 'stopped by SIGTERM after step .*saved, continue with --resume' preempted.log ||
    fail "preempted: not saved: $(cat preempted.log)"
ends preempted
grep -q '^resumed from checkpoint-' preempted.log || fail "preempted: not resumed"
echo "preempted, saved, back in the queue and resumed: one rank's bits"

submit warned # what --signal=USR1@… sends to each task
steps warned
scancel --signal=USR1 "$job"
until_state "$job" "FAILED" 60
grep -q 'stopped by SIGUSR1 after step .*saved, continue with --resume' warned.log ||
    fail "SIGUSR1: not saved: $(cat warned.log)"
submit warned
ends warned
echo "SIGUSR1 to the tasks: saved, and the next job has one rank's bits"

# --ranks in a batch script, as docs/launching.md has it: saved before its time is over.
for pair in TERM:143 USR1:138; do
    name=${pair%:*}
    cat >ranks.sbatch <<END
#!/bin/sh
#SBATCH --signal=B:$name@50
exec sifr train --ranks 2 --config $PWD/config.json --model $MODEL --data $DATA --threads 1 \
    --output $PWD/ranks-$name --max-steps 1000000
END
    job=$(sbatch --parsable --time=1 --output="$PWD/ranks.log" ranks.sbatch)
    for i in $(seq 300); do grep -q "JobId=$job WEXITSTATUS" slurm/ctl.log && break || sleep 0.2; done
    scancel "$job" # it may be in the queue again
    grep -q 'stopped by .*saved, continue with --resume' ranks.log || fail "ranks: $(cat ranks.log)"
    grep -q "JobId=$job WEXITSTATUS ${pair#*:}" slurm/ctl.log || fail "ranks: another exit code"
    echo "--ranks in a batch script, SIG$name: saved in time, ${pair#*:}"
done

# --- memory limits that act ---
if [ ! "$groups" ]; then
    echo "skipped: memory limits: no control group of version 1 can be made here"
    exit 0
fi
cat >larger.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 280,
 "hidden_size": 768, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8,
 "intermediate_size": 2048, "max_position_embeddings": 128, "torch_dtype": "bfloat16"}
J
"$SIFR" init --config larger.json --tokenizer tok --output larger >out
for i in $(seq 200); do cat text; done >long # 14 MB
sed 's/"train_batch_size": 24/"bf16": {"enabled": true}, "train_batch_size": 4/; s/400/2/
    s/"shard_size": 2, //' config.json >limited.json
"$SIFR" plan --config limited.json --model larger --world-size 4 --threads 1 --json >plan.json
planned=$(sed -n 's/^ *"peak_bytes": \([0-9]*\).*/\1/p' plan.json | head -n 1)
limited() { # NAME PERCENT
    CONFIG=$PWD/limited.json MODEL=$PWD/larger DATA=$PWD/long \
        submit "$1" --mem=$((2 * planned * $2 / 100 / 1024))K
}
limited enough 108
until_state "$job" "COMPLETED" 120
grep -q '^done: 2 steps' enough.log || fail "enough: $(cat enough.log)"
limited less 90
until_state "$job" "FAILED" 60
grep -q '^sifr train: .*memory: .* is what the control group leaves' less.log ||
    fail "less: not refused: $(cat less.log)"
[ ! -e less/model.safetensors ] || fail "less: trained"
echo "$planned bytes planned a rank: 8 % more is enough, 10 % less is refused"
