# shellcheck shell=bash
# Topic of compare-bits.sh: what carries operands between ranks: this machine's memory, MPI between
# two hosts (network namespaces of their own), a launcher that the user starts.
launched() { # RANKS STAGE OPTION…: by mpirun
    local ranks=$1 launcher options=()
    ds "\"zero_optimization\": {\"stage\": $2},"
    shift 2
    launcher=$("$sifr" doctor --json | sed -n 's/^ *"launcher": "\(.*\)",$/\1/p')
    [ "$launcher" ] || { echo "failed: no launcher"; return; }
    case $("$launcher" --version) in *'Open MPI'* | *OpenRTE*) options=(--oversubscribe --bind-to none) ;; esac
    run "$launcher" -n "$ranks" "${options[@]}" "$sifr" train --config ds.json --threads 1 \
        --model tied --data store --output out "$@"
    digest out
}
hosts_run() { # a run on hosts, in namespaces, which end with it
    ds "\"zero_optimization\": {\"stage\": $1}, $4" "$5"
    for i in $(seq "$2"); do echo "h$i slots=$3"; done >hostfile
    export sifr tree steps
    unshare --net --mount --pid --fork --mount-proc --kill-child bash -eu "$parts/on_hosts.sh" "$2" \
        "${@:6}" >hosts.out 2>&1 || {
        echo "failed: exit code $?: $(tail -n 3 hosts.out)"
        exit 1
    }
    digest out
}
compare "mpirun, 2 ranks, stage 1" launched 2 1
compare "mpirun, 4 ranks, stage 3" launched 4 3
compare "mpirun, 3 ranks, stage 2" launched 3 2 --per-device-train-batch-size 2 --gradient-accumulation-steps 1
if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null || ! unshare --net --mount true 2>/dev/null; then
    skip "several hosts: needs root, iproute2 and network namespaces"
else
    while IFS='|' read -r what stage hosts each members more; do
        compare "$what, stage $stage, $hosts hosts of $each" hosts_run "$stage" "$hosts" "$each" \
            "$members" "$more" --model tied --data store
    done <<'T'
hosts|1|2|1||
hosts|3|2|2||
hosts, bf16|2|2|2|"bf16": {"enabled": true},|
shard groups|3|2|2||"shard_size": 2,
stages|1|2|2|"pipeline": {"stages": 2},|
T
fi
