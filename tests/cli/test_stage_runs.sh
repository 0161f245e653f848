# label: full; timeout: 400, not under sanitizers (MPI keeps what it took), each MPI
# Pipeline stages as a user starts them: the bits and figures of one rank, also resumed on another
# mesh and with tied weights, dropout, recomputation and a loss scale that overflows; what was moved is
# what was planned; a rank that dies ends all of them; what does not go with stages is refused before
# the first step. All of the matrix is in test_stage_matrix.sh.
. "$SOURCE/tests/support/stage_runs.sh"
trap 'kill -9 $(jobs -p) 2>/dev/null || :; wait || :' EXIT

like_one untied fp32 2 1 gpipe 0
like_one tied fp32 2 2 1f1b 3
like_one gpt2 bf16 4 1 1f1b 1 '"activation_checkpoint_interval": 1'
grep -q '^mesh: 4 stages, all on one host; schedule 1f1b, units ' out || fail "$case: the mesh is not said"
like_one tied bf16 2 2 interleaved 2 '"chunks": 2'
like_one gpt2 fp32 4 2 zb-h1 2
like_one untied bf16 2 1 zb-h1 0 '"activation_checkpoint_interval": 1'
like_one gpt2 fp16 2 1 1f1b 3
grep -q 'step 1 skipped: a gradient overflows fp16' out err || fail "$case: no overflow"
for partition in uniform parameters type:layer; do
    like_one tied fp32 2 1 1f1b 0 "\"partition\": \"$partition\""
done

# State on disk: the bits of memory, and nothing left there.
mkdir nvme
disk='"device": "nvme", "nvme_path": "nvme"'
case="state on disk"
one_rank tied bf16
settings bf16 2 1f1b 3
sed -i "s/\"stage\": 3/\"stage\": 3, \"offload_optimizer\": {$disk}, \"offload_param\": {$disk}/" ds.json
rm -rf run
train tied run 4
same run one-tied-bf16
grep -q 'in nvme, by ' out err || fail "$case: where it is, is not said"
[ -z "$(ls nvme)" ] || fail "$case: left behind: $(ls nvme)"

# Activations on disk: the same, with what is written in the plan.
for schedule in 1f1b zb-h1; do
    case="activations on disk, $schedule"
    settings fp32 4 $schedule 1 "" '"offload_activations": "nvme", "nvme_path": "nvme"'
    "$SIFR" plan --config ds.json --model untied --world-size 4 --dump >dump
    grep -q ' write .*' dump || fail "$case: nothing is written"
    rm -rf run
    train untied run 4
    same run one-untied-fp32
    [ -z "$(ls nvme)" ] || fail "$case: left behind: $(ls nvme)"
done

# Resumed on another mesh.
first_steps tied bf16 4 2 3
goes_on tied bf16 1 1 0
goes_on tied bf16 4 4 1
goes_on tied bf16 2 1 3
goes_on tied bf16 4 2 2

# The wire of the first rank, to the byte: OPERATION KEY.
wire() {
    awk -v operation="\"$1\":" -v key="\"$2\":" '
        $1 == operation { inside = 1 }
        inside && $1 == key { gsub(",", "", $2); print $2; exit }' json
}
case="wire"
settings fp32 2 1f1b 2
train tied wired 4 --json
cp out json
for operation in gathered reduced received; do
    [ "$(wire $operation bytes)" = "$(wire $operation planned)" ] ||
        fail "$operation: $(wire $operation bytes) bytes, not $(wire $operation planned)"
    [ "$(wire $operation bytes)" -gt 0 ] || fail "$operation: nothing"
done

# The plan: the same units, and the other side's lists.
case="plan"
"$SIFR" plan --config ds.json --model tied --world-size 4 --rank 3 --dump >dump
grep -q 'send .* bytes to stage 0' dump && grep -q 'receive .* bytes from stage 0' dump ||
    fail "the list of rank 3 has no transfers"
"$SIFR" plan --config ds.json --model tied --world-size 4 >out
grep -q '^mesh *2 stages x 2 shards; this is stage 0; schedule 1f1b' out || fail "no mesh"
grep -q '^stages .* waiting for other stages' out || fail "no bubble"

# The timeline has what stages send, and the wait for it.
case="trace"
settings fp32 2 1f1b 1 "" '"trace": "trace.json"'
train tied traced 4
for name in 'receive' 'wait receive' 'send' 'wait send'; do
    for rank in 0 3; do
        grep -q "\"name\":\"$name[^\"]*\".*\"pid\":$rank," trace.json ||
            fail "rank $rank: no $name in the timeline"
    done
done

# The log of transfers is of the first stage, also where that has one rank.
for ranks in 2 4; do
    case="comms_logger, $ranks ranks"
    settings fp32 2 1f1b 2
    sed -i '1s/{/{"comms_logger": {"enabled": true}, /' ds.json
    train tied logged-$ranks $ranks
    grep -q '^ *of stage 0; the other stages run lists of their own' out || fail "$case: whose it is"
    for row in 'send stages' 'receive stages'; do
        grep -qE "^ *$row .* [1-9][0-9]* " out || fail "$case: no row of $row"
    done
    [ $ranks = 2 ] || grep -q '^ *stragglers' out || fail "$case: no stragglers"
done

# Refused before the first step, with what would do.
refused() { # RANKS TEXT: ds.json
    local code=0
    rm -rf run
    "$SIFR" train --config ds.json --model tied --data store --output run --ranks $1 >out 2>err ||
        code=$?
    [ $code = 2 ] || fail "$2: exit code $code"
    grep -q "$2" err || fail "$2: another message"
    ! grep -q '^step 1' out || fail "$2: a step ran"
}
settings fp32 3 1f1b 0
refused 4 'pipeline.stages is 3, which does not divide 4 ranks; give 2 or 4'
settings fp32 4 interleaved 0 '"chunks": 4'
refused 4 '4 stages of 4 chunks need 16 units, but the model has 8'
settings fp32 4 interleaved 0
sed -i 's/"train_batch_size": 8/"train_batch_size": 6/' ds.json
refused 4 'give 4 or 8, or schedule 1f1b'
settings fp32 2 1f1b 0 '"partition": "type:nothing"'
refused 2 'type:nothing finds none of the 8 units'
settings fp32 2 1f1b 0 '"partition": "type:("'
refused 2 'no regular expression'
settings fp32 2 1f1b 0 '"partition": "evenly"'
refused 2 'none of best, uniform, parameters and type:REGEX'
settings fp32 2 1f1b 2 "" '"step_order": "unit"'
refused 2 'step_order unit with stages is not supported yet'

# A rank that dies in a stage: all others end in time, and say who it was.
case="killed"
settings fp32 2 1f1b 1 "" '"collective_timeout": 20'
rm -rf run
"$SIFR" train --config ds.json --model tied --data store --output run --ranks 4 \
    --max-steps 1000000 >out 2>err &
run=$!
for i in $(seq 300); do
    [ "$(grep -c . run/metrics.csv 2>/dev/null || :)" -gt 3 ] 2>/dev/null && break
    sleep 0.1
done
for process in $(pgrep -f -- "^$SIFR train .*--output run "); do
    tr '\0' '\n' 2>/dev/null </proc/$process/environ |
        grep -qE '^(OMPI_COMM_WORLD_RANK|PMI_RANK)=3$' && victim=$process
done
kill -9 $victim
code=0
wait $run || code=$?
[ $code = 4 ] || fail "a dead rank: exit code $code"
grep -q 'rank 3 .*rank 3: stage 1, shard 1' err || fail "a dead rank: its place is not named"
