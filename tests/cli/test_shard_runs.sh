# Copies of the state, each cut over a group of ranks (sifr.shard_size, mics_shard_size), on real
# ranks, as a user starts them: the weights of one rank to the last bit, each group's wire as
# planned, checkpoints that go on in other meshes, and sizes that cannot be.
# timeout: 400, not under sanitizers (MPI keeps what it took), each MPI
. "$SOURCE/tests/support/ranks.sh"
tiny_model

settings() { # STAGE PRECISION [MORE OF zero_optimization]
    cat >ds.json <<J
{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 0.5,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.01}},
 "bf16": {"enabled": $([ $2 = bf16 ] && echo true || echo false)},
 "zero_optimization": {"stage": $1${3:-}},
 "sifr": {"seq_length": 64, "max_steps": 5, "threads": 1}}
J
}
train() { # OUTPUT RANKS OPTION...
    rm -rf "$1"
    "$SIFR" train --config ds.json --model model --data text --output "$1" --ranks "$2" \
        "${@:3}" >out 2>err || fail "$case: exit code $?"
}
same() { # DIRECTORY REFERENCE
    cmp -s "$1/model.safetensors" "$2/model.safetensors" || fail "$case: other weights"
    cut -d, -f1-5 "$1/metrics.csv" >have.csv
    cut -d, -f1-5 "$2/metrics.csv" | cmp -s - have.csv || fail "$case: other figures"
}
check_wire() {
    [ "$(groups | wc -l)" = 6 ] || fail "$case: groups: $(groups)"
    groups | awk '$3 != $4 { bad = 1 } END { exit bad }' || fail "$case: the wire: $(groups)"
    [ "$(groups | awk '$1 == "replicas" && $3 > 0' | wc -l)" = 2 ] ||
        fail "$case: between copies: $(groups)"
}

shards=', "mics_shard_size": 2'
orders=(unit batch)
turn=0
for precision in fp32 bf16; do
    settings 0 $precision
    case="$precision on one rank"
    train one-$precision 1
    cmp -s one-$precision/model.safetensors model/model.safetensors && fail "$case: not trained"
    for stage in 1 2 3; do
        turn=$((turn + 1))
        order=${orders[$((turn % 2))]}
        case="$precision, stage $stage, two copies of two ranks, order $order"
        settings $stage $precision "$shards"
        train copies 4 --step-order $order --json
        grep -q 'mics_shard_size 2: DeepSpeed took MiCS out' out err || fail "$case: no note"
        same copies one-$precision
        check_wire
    done
    case="$precision, stage 3, two ranks"
    settings 3 $precision
    train flat 2 --step-order batch
    same flat one-$precision
done

case="state in host memory"
settings 3 bf16 "$shards, \"offload_optimizer\": {\"device\": \"cpu\"}"
train copies 4
same copies one-bf16
case="state on disk"
mkdir -p swap
settings 2 bf16 "$shards, \"offload_optimizer\": {\"device\": \"nvme\", \"nvme_path\": \"swap\"}"
train copies 4 --json
same copies one-bf16
check_wire

case="four copies of two ranks"
settings 3 fp32
train copies 8 --shard-size 2 --step-order batch
same copies one-fp32
grep -q '^mesh: 4 replicas x 2 shards, all on one host$' out || fail "$case: the first lines"

# A second copy of the parameters among two neighbours: the first gather of a step comes from all.
case="hpZ"
settings 3 bf16 ', "zero_hpz_partition_size": 2'
train near 4 --json
same near one-bf16
grep -q 'zero_hpz_partition_size 2: .* from all 4 ranks .* later ones from 2 neighbours' out err ||
    fail "$case: not said"
groups | awk '$3 != $4 { bad = 1 } END { exit bad }' || fail "$case: the wire: $(groups)"
[ "$(groups | awk '$1 == "host" && $2 == "gathered" && $3 > 0' | wc -l)" = 1 ] ||
    fail "$case: nothing among neighbours: $(groups)"
"$SIFR" plan --config ds.json --model model --world-size 4 --ranks-per-host 2 >out 2>err ||
    fail "$case: plan: exit code $?"
grep -q '^  host .* in gathers, .*; nothing from other hosts$' out || fail "$case: plan: neighbours"
grep -q '^secondary ' out || fail "$case: plan: no class of memory"
code=0
settings 3 bf16 ', "zero_hpz_partition_size": 6'
sed -i 's/"train_batch_size": 16/"train_batch_size": 24/' ds.json
"$SIFR" plan --config ds.json --model model --world-size 12 --ranks-per-host 4 >out 2>err || code=$?
[ $code = 2 ] || fail "$case: 6 ranks, 4 on a host: exit code $code"
grep -q 'a host has 4 ranks, and a second copy .*; give 2 or 4$' err || fail "$case: $(cat err)"

# --- checkpoints go on in any mesh ---
case="stopped in two copies of two ranks"
settings 3 bf16 "$shards"
train moved 4 --max-steps 2
resume() { # RANKS OPTION...
    rm -f moved/model.safetensors
    "$SIFR" train --config ds.json --model model --data text --output moved --ranks $1 --resume \
        "${@:2}" >out 2>err || fail "$case: exit code $?"
    grep -q 'resumed from checkpoint-' out || fail "$case: not resumed"
}
case="resumed on two ranks without copies"
settings 1 bf16
resume 2 --max-steps 3
case="resumed in two copies of four ranks"
settings 2 bf16
resume 8 --shard-size 4 --max-steps 4
case="resumed on one rank"
settings 0 bf16
resume 1 --max-steps 5
same moved one-bf16

# --- what is refused, and what plan says ---
refused() { # RANKS SIZE MESSAGE
    local code=0
    settings 3 bf16
    "$SIFR" plan --config ds.json --model model --world-size $1 --shard-size $2 >out 2>err || code=$?
    [ $code = 2 ] || fail "shard_size $2 of $1 ranks: exit code $code"
    grep -qF -- "$3" err || fail "shard_size $2 of $1 ranks: another message"
}
refused 8 3 "8 ranks cannot be divided into groups of that many; give 2, 4 or 8"
refused 4 1 "as at zero_optimization.stage 0; set that and leave the size out, or give 2 or 4"
refused 1 2 "the run has one rank; leave it out, or start more ranks"
settings 3 bf16 ', "mics_shard_size": 4'
"$SIFR" plan --config ds.json --model model --world-size 16 --ranks-per-host 4 >out 2>err ||
    fail "plan: exit code $?"
grep -q '^mesh  *4 replicas x 4 shards, replicas between hosts, shards inside a host$' out ||
    fail "plan: the mesh"
grep -q '^  shards .*; nothing from other hosts$' out || fail "plan: shards cross hosts"
grep '^  replicas ' out | grep -q 'from other hosts' || fail "plan: replicas"
grep '^  replicas ' out | grep -q 'nothing' && fail "plan: replicas do not cross"
echo "all: $SECONDS s"
