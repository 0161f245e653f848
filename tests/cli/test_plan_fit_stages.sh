# `sifr plan --fit` chooses the number of pipeline stages where the config says "auto": the config has
# it, and the command that is printed runs with the planned memory and wire. Elsewhere the number
# stays.
# label: full, timeout: 300, not under sanitizers (test_fit_stages is)
. "$SOURCE/tests/support/ranks.sh"
expect() { # CODE COMMAND…
    local want=$1 code=0
    shift
    "$SIFR" "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] || fail "$*: exit code $code, not $want"
}
says() { grep -qE -- "$1" out || fail "no line like: $1"; }
export XDG_CACHE_HOME=$PWD/cache
tiny_model
# Between these ranks bytes take long, so less is sent with stages than with slices.
cat >machine.json <<'END'
{"version": 1, "fp32_operations_per_s": 1e11, "bf16_operations_per_s": 1e12,
 "memory_bytes_per_s": 1e10, "instruction_s": 1e-6, "host_latency_s": 1e-5, "host_bytes_per_s": 1e7}
END
config() { # STAGES
    echo '{"train_batch_size": 24, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
     "pipeline": {"stages": '"$1"'}, "sifr": {"seq_length": 64, "max_steps": 2}}' >ds.json
}
fit="plan --config ds.json --model model --data text --machine machine.json --threads 1"

config '"auto"'
expect 0 $fit --world-size 4 --fit --output fit.json
says '^chosen +ZeRO stage [0-3], pipeline stages [24], micro batch '
says '^as given +ZeRO stage 0, micro batch 1, accumulation 6, '
stages=$(sed -n 's/^chosen .*pipeline stages \([24]\),.*/\1/p' out)
grep -q "\"stages\": $stages" fit.json || fail "the config: $(cat fit.json)"
command=$(sed -n 's/^  *sifr \(train .*\)/\1/p' out)
[ "$command" = "train --config fit.json --ranks 4 --output fit-run" ] || fail "the command: $command"
predicted=$(sed -n '/^chosen/{n; s/.*predicted \(.*\) s a step/\1/p}' out)
given=$(sed -n '/^as given/{n; s/.*predicted \(.*\) s a step/\1/p}' out)
awk "BEGIN { exit !($predicted < $given) }" || fail "$predicted s are not less than $given s"
expect 0 $fit --world-size 4 --fit --json
grep -q "\"pipeline_stages\": $stages" out || fail "the object has another number"
expect 0 plan --config fit.json --machine machine.json --threads 1 --world-size 4
says "^mesh +$stages stages"
says "^predicted +$predicted s a step"
expect 0 $command --threads 1 --json
for operation in gathered reduced received; do
    awk -v operation="\"$operation\":" '$1 == operation { inside = 1 }
        inside && $1 == "\"bytes\":" { bytes = $2 }
        inside && $1 == "\"planned\":" { exit bytes + 0 != $2 + 0 }' out ||
        fail "$operation: not as planned"
done
grep -q "^mesh: $stages stages" err || fail "the run has another mesh"

# A flag says "auto" as well; stages that are given, or switched off, stay.
config 1
expect 0 $fit --world-size 4 --fit --output one.json
! grep -q 'pipeline stages' out || fail "stages that nobody asked for"
expect 0 $fit --world-size 4 --pipeline-stages auto --fit --output same.json
says "^chosen .*pipeline stages $stages,"
config 2
expect 0 $fit --world-size 4 --fit --output two.json
says '^chosen .*pipeline stages 2,'
echo '{"train_batch_size": 24, "pipeline": {"stages": "auto", "enabled": false}}' >ds.json
expect 0 $fit --seq-length 64 --world-size 4 --fit --output off.json
! grep -q 'pipeline stages' out || fail "stages that were switched off"
# Alone "auto" is 1.
config '"auto"'
expect 0 $fit --world-size 4
! grep -q '^mesh ' out || fail "a run with \"auto\" has stages"

# So with shard_size: where hosts are far from each other, and ranks have no room for all parameters,
# a copy of the state on each host is chosen, and the config says so; a run takes one copy for "auto".
sed 's/"host_bytes_per_s": 1e7}$/"host_bytes_per_s": 1e9, "ranks_per_host": 8,/' machine.json >hosts.json
echo ' "network_latency_s": 1e-4, "network_bytes_per_s": 1e6}' >>hosts.json
cp -r model large
sed -i 's/"hidden_size": [0-9]*/"hidden_size": 512/; s/"intermediate_size": [0-9]*/"intermediate_size": 1408/' \
    large/config.json
echo '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1,
 "sifr": {"seq_length": 64, "max_steps": 2, "shard_size": "auto"}}' >ds.json
copies="plan --config ds.json --model large --machine hosts.json --threads 1 --world-size 16"
expect 0 $copies
! grep -q '^mesh .*replicas' out || fail "a run with \"auto\" has copies"
expect 0 $copies --device-memory 50MiB --fit --output copies.json
says '^chosen .*shard_size 8'
grep -q '"shard_size": 8' copies.json || fail "the config: $(cat copies.json)"
expect 0 plan --config copies.json --machine hosts.json --threads 1 --world-size 16
says '^mesh +2 replicas x 8 shards'

# So with tensor and context ranks: a sequence that no rank has the memory for is divided, the config
# says so, and a run of it moves what is planned. What is given stays, "auto" alone is 1.
echo '{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
 "tensor_parallel": {"size": "auto"},
 "sifr": {"seq_length": 4096, "max_steps": 1, "save_steps": 0,
          "context_parallel": {"size": "auto", "kind": "gather"}}}' >ds.json
sed 's/"host_latency_s": 1e-5, "host_bytes_per_s": 1e7/"host_latency_s": 1e-6, "host_bytes_per_s": 1e10/' machine.json >quick.json
mesh="plan --config ds.json --model model --data text --machine quick.json --threads 1 --world-size 4"
expect 0 $mesh --device-memory 15MiB --fit --output mesh.json
says '^chosen .*(tensor|context) ranks [24]'
! grep -q '"size": "auto"' mesh.json || fail "auto is written: $(cat mesh.json)"
size() { sed -n "s/^chosen .*$1 ranks \([24]\).*/\1/p" out; }
tensors=$(size tensor) contexts=$(size context)
expect 0 plan --config mesh.json --machine quick.json --threads 1 --world-size 4
[ -z "$contexts" ] || says "^mesh .*$contexts contexts"
[ -z "$tensors" ] || says "^mesh .*$tensors tensors"
expect 0 train --config mesh.json --ranks 4 --threads 1 --output mesh-run --json
groups | awk '$3 != $4 { bad = 1 } END { exit bad || NR == 0 }' || fail "not as planned: $(groups)"
expect 0 $mesh --device-memory 15MiB --fit --json
grep -q "\"context_size\": ${contexts:-1}" out && grep -q "\"tensor_size\": ${tensors:-1}" out ||
    fail "the object has other numbers"
sed -i 's/{"size": "auto", "kind"/{"size": 2, "kind"/' ds.json
expect 0 $mesh --fit --output two-contexts.json
says '^chosen .*context ranks 2'
sed -i 's/{"size": 2, "kind"/{"size": "auto", "kind"/' ds.json
expect 0 $mesh
! grep -q '^mesh ' out || fail "a run with \"auto\" divides something"

cp ds.json auto.json
# DeepSpeed's names say "auto" as well. What is chosen as 1 is written as 1.
sed -i 's/"tensor_parallel": {"size"/"sequence_parallel_size": "auto", "tensor_parallel": {"autotp_size"/; s/"size": "auto", "kind"/"kind"/' ds.json
expect 0 $mesh --device-memory 15MiB --fit --output names.json
says '^chosen .*(tensor|context) ranks [24]'
expect 0 $mesh --fit --output names.json
! grep -q '"size": "auto"\|_size": "auto"' names.json || fail "auto is written: $(cat names.json)"

# The global batch stays: where it is no multiple of all ranks, an axis that is to be chosen divides
# them, and without one the batch is refused as a run does.
cp auto.json ds.json
sed -i 's/"train_batch_size": 4/"train_batch_size": 2/; s/"gather"/"ulysses"/' ds.json
expect 0 $mesh --fit --output batch.json
says '^chosen .*(tensor|context) ranks [24]'
grep -q '"train_batch_size": 2,' batch.json || fail "another batch: $(cat batch.json)"
expect 0 train --config batch.json --ranks 4 --threads 1 --output batch-run --json
sed -i 's/"size": "auto"/"size": 1/g' ds.json
expect 2 $mesh --fit --output batch.json
grep -q 'train_batch_size 2 is no multiple of gradient_accumulation_steps 1 × 4 ranks' err || fail "$(cat err)"
