# label: full
# Ranks on 2 and on 4 hosts, which are network namespaces: the same bits as one rank, over TCP and
# not through the memory that they share in truth; the interfaces' counters agree with the ledger.
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
