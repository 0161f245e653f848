# Stages, copies and shards together: the bits and figures of one rank, each group's wire as planned,
# a checkpoint that goes on in another mesh, and sizes that do not divide a stage's ranks.
# label: full; timeout: 400, not under sanitizers (MPI keeps what it took), each MPI
. "$SOURCE/tests/support/stage_runs.sh"
# mesh MODEL PRECISION SCHEDULE ZERO [MORE]: 2 stages x 2 replicas x 2 shards
mesh() {
    like_one $1 $2 2 4 $3 $4 "${5:-}" '"shard_size": 2'
    grep -q '^mesh: 2 stages x 2 replicas x 2 shards, all on one host; schedule' out ||
        fail "$case: the first lines"
}
for zero in 0 1 2 3; do
    mesh tied fp32 1f1b $zero
    mesh untied bf16 gpipe $zero
done
mesh gpt2 bf16 1f1b 3 '"activation_checkpoint_interval": 1'
mesh tied fp32 interleaved 2 '"chunks": 2'

# Resumed on other meshes.
first_steps tied bf16 8 2 2 '"shard_size": 2'
goes_on tied bf16 1 1 0 '"shard_size": 0'
goes_on tied bf16 4 1 2 '"shard_size": 2'
goes_on tied bf16 8 2 3 '"shard_size": 4'

# The wire of the first rank by group, to the byte.
case="wire"
settings fp32 2 1f1b 2 "" '"shard_size": 2'
train tied wired 8 --json
groups | awk '$3 != $4 { bad = 1 } END { exit bad }' || fail "$case: $(groups)"
moved=$(groups | awk '$3 > 0 { printf "%s-%s ", $1, $2 }')
for one in stages-received shards-gathered shards-reduced replicas-gathered replicas-reduced; do
    case " $moved" in *" $one "*) ;; *) fail "wire: no $one: $(groups)" ;; esac
done

# What plan says, and what is refused before the first step.
case="plan"
"$SIFR" plan --config ds.json --model tied --world-size 8 --ranks-per-host 4 >out
grep -q '^mesh *2 stages x 2 replicas x 2 shards; this is stage 0; schedule 1f1b' out ||
    fail "plan: the mesh"
grep -q '^where  *stages between hosts, replicas inside a host, shards inside a host$' out ||
    fail "plan: where axes are"
grep -q '^  replicas .*; nothing from other hosts$' out || fail "plan: replicas cross hosts"
case="refused"
settings fp32 2 1f1b 2 "" '"shard_size": 4'
code=0
"$SIFR" train --config ds.json --model tied --data store --output refused --ranks 4 >out 2>err ||
    code=$?
[ $code = 2 ] || fail "shard_size 4 of 2 ranks a stage: exit code $code"
grep -q 'shard_size is 4: 2 ranks of a stage cannot be divided into groups of that many; give 2' \
    err || fail "shard_size 4 of 2 ranks a stage: another message"
! [ -e refused ] || fail "shard_size 4 of 2 ranks a stage: an output"
