# label: full
# Ranks on 2 and on 4 hosts, which are network namespaces: the same bits as one rank, over TCP and
# not through the memory that they share in truth; the interfaces' counters agree with the ledger,
# also by axis of a mesh.
# not under sanitizers (MPI keeps what it took), timeout: 300
. "$SOURCE/tests/support/ranks.sh"
. "$SOURCE/tests/support/namespaces.sh"
hosts 4
tiny_model
sed 's/"sifr"/"zero_optimization": {"stage": STAGE}, "sifr"/' ds.json >staged.json
bits() { sha256sum <"$1/model.safetensors"; }
# number KEY: of the entry after it, in the JSON on the last run's standard output
number() { sed -n "/\"$1\": {/,/}/s/.*\"bytes\": \([0-9]*\).*/\1/p" out; }
train() { # HOST OPTION…
    local host=$1
    shift
    timeout 120 ip netns exec "$host" unshare --uts sh -c 'hostname $0; exec "$@"' "$host" "$SIFR" \
        train --model model --data text --threads 1 --json "$@" >out 2>err || fail "$*: exit code $?"
}

train h1 --config ds.json --output alone
want=$(bits alone)
for case in "1 2 1" "3 2 1" "2 4 1" "3 2 2"; do # stage, hosts, ranks on each
    set -- $case
    sed "s/STAGE/$1/" staged.json >config.json
    for i in $(seq "$2"); do echo "h$i slots=$3"; done >hostfile
    name="stage $1 on $2 hosts of $3"
    before=$(received h1)
    train h1 --config config.json --output "run-$1-$2-$3" --hostfile hostfile
    after=$(received h1)
    [ "$(bits "run-$1-$2-$3")" = "$want" ] || fail "$name: other bits than one rank's"
    grep -q "^sifr train: $(($2 * $3)) ranks on h1:$3,h2:$3" err || fail "$name: not said"
    counted=$(($(number gathered) + $(number reduced) + $(number control)))
    wire=$((after - before))
    echo "$name: $counted bytes in the ledger of rank 0, $wire at its interface"
    [ "$3" = 1 ] || continue # what a neighbour gave came through memory
    [ "$wire" -ge "$counted" ] || fail "$name: less came over the network than the ledger has"
    # Headers; starting, saving and the launcher's own talk.
    [ "$wire" -le $((counted * 11 / 10 + 3000000)) ] || fail "$name: more than the ledger has"
done

# Placed by turns: numbered host by host all the same.
if [ ! "$mpich" ]; then
    sed 's/"sifr": {/"sifr": {"shard_size": 2, /; s/STAGE/3/' staged.json >config.json
    on h1 timeout 120 $launcher --map-by node --host h1:2,h2:2 -n 4 "$SIFR" train --model model \
        --data text --threads 1 --config config.json --output cyclic >out 2>err ||
        fail "placed by turns: exit code $?"
    [ "$(bits cyclic)" = "$want" ] || fail "placed by turns: other bits than one rank's"
    grep -q "its rank 1 is the launcher's 2 " err || fail "placed by turns: not said"
    grep -q '^mesh: 2 replicas x 2 shards, replicas between hosts, shards inside a host' out ||
        fail "placed by turns: the mesh"
fi

# --- a mesh on several hosts: only what the plan says crosses, and only along its axis ---
# crossed GROUP: bytes from other hosts, of the first rank
crossed() {
    awk -v group="$1" '/"groups":/ { inside = 1 }
        inside && /^      "[a-z]+": [{]/ { gsub(/[":{]/, ""); at = $1 }
        inside && /^        "[a-z]+": [{]/ { gsub(/[":{]/, ""); of = $1 }
        inside && at == group && of != "control" && of != "sent" && /"crossed":/ {
            gsub(",", ""); sum += $2 }
        END { print sum + 0 }' out
}
# planned GROUP: bytes a step that cross hosts
planned() {
    awk -v group="$1" '/"mesh":/ { inside = 1 }
        inside && /^    "[a-z]+": [{]/ { gsub(/[":{]/, ""); at = $1 }
        inside && at == group && /"crossing_bytes":/ { gsub(",", ""); print $2; exit }' plan
}
steps=$(sed -n 's/.*"max_steps": *\([0-9]*\).*/\1/p' ds.json)
copies='"sifr": {"shard_size": 2, '
stages='"pipeline": {"stages": 2}, "sifr": {'
# AXIS, ZeRO stage, hosts, ranks on each; two ranks on each axis
for case in "replicas 3 2 2" "replicas 2 4 1" "stages 1 2 2" "stages 0 4 1"; do
    set -- $case
    name="2 $1 x 2 shards, ZeRO $2, on $3 hosts of $4"
    more=$copies
    [ "$1" = replicas ] || more=$stages
    sed "s/STAGE/$2/; s/\"sifr\": {/$more/" staged.json >config.json
    for i in $(seq "$3"); do echo "h$i slots=$4"; done >hostfile
    before=$(received h1)
    train h1 --config config.json --output "mesh-$1-$2" --hostfile hostfile
    after=$(received h1)
    [ "$(bits "mesh-$1-$2")" = "$want" ] || fail "$name: other bits than one rank's"
    shards="inside a host"
    [ "$4" = 2 ] || shards="between hosts"
    grep -qE "^mesh: 2 $1 x 2 shards, $1 between hosts, shards $shards(;|\$)" err ||
        fail "$name: the first lines"
    "$SIFR" plan --config config.json --model model --world-size 4 --ranks-per-host "$4" \
        --json >plan || fail "$name: plan"
    all=0
    for group in shards $1; do
        [ "$(crossed $group)" = $((steps * $(planned $group))) ] ||
            fail "$name: $(crossed $group) bytes of $group crossed, planned are $steps x $(planned $group)"
        all=$((all + $(crossed $group)))
    done
    [ "$(planned $1)" -gt 0 ] || fail "$name: nothing is planned to cross"
    [ "$4" = 1 ] || [ "$(planned shards)" = 0 ] || fail "$name: shards are planned to cross"
    wire=$((after - before))
    echo "$name: $all bytes crossed to rank 0, $wire at its host's interface, for $4 ranks"
    [ "$wire" -ge $(($4 * all)) ] || fail "$name: less came over the network than the ledger has"
    [ "$wire" -le $(($4 * all * 11 / 10 + 3000000)) ] || fail "$name: more than the ledger has"
done

# ZeRO++: a second copy of the parameters inside each host, so that only the first gather of a step
# crosses, and gathers in 8 bits, which have bits of their own, the same on one rank.
sed 's/STAGE/3/' staged.json >config.json
"$SIFR" plan --config config.json --model model --world-size 4 --ranks-per-host 2 --json >plan
every=$((steps * $(planned shards)))
for i in 1 2; do echo "h$i slots=2"; done >hostfile
for quantised in false true; do
    name="hpZ, 8 bits $quantised"
    keys="\"zero_hpz_partition_size\": 2, \"zero_quantized_weights\": $quantised"
    sed "s/\"stage\": STAGE/\"stage\": 3, \"zero_quantized_weights\": $quantised/" staged.json >config.json
    train h1 --config config.json --output "near-alone-$quantised"
    sed "s/\"stage\": STAGE/\"stage\": 3, $keys/" staged.json >config.json
    before=$(received h1)
    train h1 --config config.json --output "near-$quantised" --hostfile hostfile
    after=$(received h1)
    [ "$(bits "near-$quantised")" = "$(bits "near-alone-$quantised")" ] ||
        fail "$name: other bits than one rank's"
    [ $quantised = true ] || [ "$(bits near-false)" = "$want" ] || fail "$name: other bits than ever"
    [ $quantised = false ] || ! [ "$(bits near-true)" = "$want" ] || fail "$name: the same bits"
    "$SIFR" plan --config config.json --model model --world-size 4 --ranks-per-host 2 --json >plan ||
        fail "$name: plan"
    # Shards are all ranks here, so theirs is the group of the world.
    [ "$(crossed world)" = $((steps * $(planned shards))) ] ||
        fail "$name: $(crossed world) bytes of shards crossed, planned are $steps x $(planned shards)"
    [ "$(crossed host)" = 0 ] || fail "$name: $(crossed host) bytes crossed among neighbours"
    [ "$(planned host)" = 0 ] || fail "$name: gathers among neighbours are planned to cross"
    all=$(crossed world)
    wire=$((after - before))
    echo "$name: $all bytes crossed to rank 0, $wire at its host's interface, for 2 ranks"
    [ "$wire" -ge $((2 * all)) ] || fail "$name: less came over the network than the ledger has"
    [ "$wire" -le $((2 * all * 11 / 10 + 3000000)) ] || fail "$name: more than the ledger has"
    [ "$all" -lt "$every" ] || fail "$name: $all bytes crossed, $every before"
    every=$all
done

# And gradients in 4 bits, the usual three: inside a host first, then between the ranks of one place.
# Bits of their own, the same from run to run; fewer bytes cross again.
keys='"zero_hpz_partition_size": 2, "zero_quantized_weights": true, "zero_quantized_gradients": true'
sed "s/\"stage\": STAGE/\"stage\": 3, $keys/" staged.json >config.json
before=$(received h1)
train h1 --config config.json --output sums --hostfile hostfile
after=$(received h1)
grep -q "4 bits, among 2 ranks of each host, then between hosts" err || fail "4 bits: not said"
"$SIFR" plan --config config.json --model model --world-size 4 --ranks-per-host 2 --json >plan ||
    fail "4 bits: plan"
all=$(crossed world)
wire=$((after - before))
[ "$all" = $((steps * $(planned shards))) ] ||
    fail "4 bits: $all bytes of shards crossed, planned are $steps x $(planned shards)"
echo "4 bits: $all bytes crossed to rank 0, $wire at its host's interface, for 2 ranks"
[ "$wire" -ge $((2 * all)) ] || fail "4 bits: less came over the network than the ledger has"
[ "$wire" -le $((2 * all * 11 / 10 + 3000000)) ] || fail "4 bits: more than the ledger has"
[ $((2 * all)) -lt "$every" ] || fail "4 bits: $all bytes crossed, $every before"
train h1 --config config.json --output sums-again --hostfile hostfile
[ "$(bits sums)" = "$(bits sums-again)" ] || fail "4 bits: other bits in another run"
[ "$(bits sums)" != "$(bits near-true)" ] || fail "4 bits: the bits of none"
