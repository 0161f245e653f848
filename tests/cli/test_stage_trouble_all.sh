# label: soak; timeout: 2400, not under sanitizers (MPI keeps what it took)
# Ranks of a mesh that are killed or stopped, by chance in rank and moment, with every schedule and
# ZeRO stage, in memory and with state on disk.
. "$SOURCE/tests/support/stage_trouble.sh"
mkdir nvme
RANDOM=24
for trial in $(seq 40); do
    rank=$((RANDOM % 8)) pause=$((RANDOM % 1000)) zero=$((trial % 4))
    schedule=$(echo gpipe 1f1b interleaved zb-h1 | cut -d' ' -f$((RANDOM % 4 + 1)))
    signal=$([ $((trial % 3)) = 0 ] && echo STOP || echo KILL)
    settings bf16 2 $schedule $zero "" '"shard_size": 2, "collective_timeout": 5'
    [ $((RANDOM % 2)) = 0 ] || sed -i \
        "s/\"stage\": $zero/\"stage\": $zero, \"offload_optimizer\": {\"device\": \"nvme\", \"nvme_path\": \"nvme\"}/" ds.json
    case="trial $trial: rank $rank $signal after $pause ms, $schedule, ZeRO $zero"
    start
    sleep "$(printf '0.%03d' $pause)"
    lose $rank $signal
    echo "$case: $(cut -c1-160 said | head -1)"
done
