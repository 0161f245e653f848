# The planner as a user meets it: a model of 70 billion parameters from its config.json alone, in
# less than a second; what fits and what else would; --fit, and a run of the config that it writes;
# DeepSpeed's estimates beside the plan; a run that does not fit and the change that makes it fit.
# label: full, timeout: 300, not under sanitizers (test_search is)
fail() { echo "FAILED: $1" >&2; cat out err >&2; exit 1; }
expect() { # CODE COMMAND…
    local want=$1 code=0
    shift
    "$SIFR" "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] || fail "$*: exit code $code, not $want"
    [ "$want" = 0 ] || [ "$(wc -l <err)" = 1 ] || fail "$*: an error is one line"
}
says() { grep -qE -- "$1" out || fail "no line like: $1"; }
complains() { grep -qE -- "$1" err || fail "no error like: $1"; }
number() { sed -n "s/^  \"$1\": \([0-9.e+-]*\),*$/\1/p" out; } # of the JSON in out

export XDG_CACHE_HOME=$PWD/cache
cat >machine.json <<'END'
{"version": 1, "fp32_operations_per_s": 1e11, "bf16_operations_per_s": 1e12,
 "memory_bytes_per_s": 1e10, "instruction_s": 1e-6, "host_latency_s": 1e-5, "host_bytes_per_s": 1e9,
 "network_latency_s": 1e-4, "network_bytes_per_s": 1e9, "ranks_per_host": 8}
END

# --- Llama 70B on 64 ranks: seconds of processor time, the best of three ---
mkdir -p large
cat >large/config.json <<'END'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128256,
 "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64,
 "num_key_value_heads": 8, "intermediate_size": 28672, "max_position_embeddings": 8192,
 "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": false}
END
cat >large.json <<'END'
{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
 "zero_optimization": {"stage": 3}, "sifr": {"recompute": "unit", "seq_length": 4096}}
END
large="plan --config large.json --model large --world-size 64 --machine machine.json --threads 2"
best=99
for try in 1 2 3; do
    TIMEFORMAT='%U %S'
    { time expect 0 $large --device-memory 80GiB --json; } 2>took
    took=$(awk '{ print $1 + $2 }' took)
    best=$(awk "BEGIN { print $took < $best ? $took : $best }")
done
echo "Llama 70B on 64 ranks: planned in $best s"
[ "$(number parameters)" = 70553706496 ] || fail "parameters: $(number parameters)"
[ "$(number largest_micro_batch_size)" -ge 1 ] || fail "no micro batch fits in 80 GiB"
if ! ldd "$SIFR" | grep -q 'libasan\|libtsan' && ! nm "$SIFR" 2>/dev/null | grep -q __asan_init; then
    awk "BEGIN { exit !($best < 1) }" || fail "planning took $best s: more than a second"
fi
peak=$(number peak_bytes)

# --- what each next setting would give has a name, also a step order where that is "auto" ---
expect 0 $large --gradient-accumulation-steps 4
sed -n '/^with one setting changed/,/^$/p' out | grep -qE '^sifr\.step_order (unit|batch) ' ||
    fail "no other step order"
if sed -n '/^with one setting changed/,/^$/p' out | grep -q '^  '; then fail "a change without name"; fi

# --- a disk that is not at hand: everything goes there, and the config says where it is to be ---
sed 's/"train_micro_batch_size_per_gpu": 1/"train_batch_size": 16/; s/"stage": 3/"stage": 0/' \
    large.json >batch.json
small="plan --config batch.json --model large --world-size 8 --machine machine.json --threads 2"
expect 3 $small --fit --device-memory 24GiB
complains "nothing fits"
expect 0 $small --fit --device-memory 24GiB --nvme 4TiB --output infinity.json
says "^chosen .*ZeRO stage 3, .*optimizer state on disk, parameters on disk"
[ "$(grep -c '"nvme_path": "/local_nvme"' infinity.json)" = 3 ] || fail "no directory: $(cat infinity.json)"
expect 3 $small --fit --device-memory 24GiB --nvme 100GiB
expect 2 $small --nvme nowhere
complains "^sifr plan: --nvme nowhere: no directory here, and no size such as 4TiB$"

# --- the answer's edge, through the program: the largest fits, one more does not ---
sed 's/"version": 1,/"version": 1, "room_bytes": 80000000000,/' machine.json >room.json
edge="plan --config large.json --model large --world-size 64 --machine room.json --threads 2"
expect 0 $edge --json
micro=$(number largest_micro_batch_size) length=$(number largest_seq_length)
expect 0 $edge --per-device-train-batch-size "$micro"
says '^It fits: a rank takes .* may take 74\.5 GiB \(from the machine.s description\)\.$'
expect 0 $edge --per-device-train-batch-size $((micro + 1))
says '^It does not fit on that machine\. memory: a rank takes '
expect 0 $edge --seq-length "$length"
says '^It fits: a rank takes '
expect 0 $edge --seq-length $((length + 1))
says '^It does not fit on that machine\. '
expect 0 $large --host-memory 640GiB # eight ranks share it
says '8 ranks share the 640 GiB of a host'
expect 0 $large --device-memory 80GiB
says '^activations .* instruction [0-9]+, (forward|backward|wait|gather) of '
says '^parameters .* always$'
says '^The peak is at instruction [0-9]+, '
says '^micro batch +[0-9]+ fits, one more does not; this run has 1$'
says '^zero_optimization.stage 2 .* does not fit$'
says '^sifr.recompute none '

# --- DeepSpeed ---
expect 0 $large --device-memory 80GiB --compare deepspeed
says '^DeepSpeed.s estimators .* for 70,553,706,496 parameters, largest layer 1,050,673,152, 8 x 8 ranks$'
says '^DeepSpeed, on a GPU +150 GiB +22\.4 GiB$' # 2 + 18/64, and 4 layers + 18/64
says '^- sifr keeps gradients once, in fp32'
expect 2 $large --compare megatron
complains '--compare megatron: only deepspeed is known'

# --- fit ---
mkdir -p small
"$SIFR" tokenizer train --vocab-size 512 --data "$SOURCE/docs/config.md" --output tokenizer \
    >out 2>err || fail "tokenizer"
cat >config.json <<'END'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 512,
 "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
 "intermediate_size": 704, "max_position_embeddings": 256, "eos_token_id": 0, "bos_token_id": 0}
END
"$SIFR" init --config config.json --tokenizer tokenizer --output small >out 2>err || fail init
cat >ds.json <<'END'
{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 32, "bf16": {"enabled": true},
 "sifr": {"seq_length": 256, "max_steps": 1}}
END
small="plan --model small --machine machine.json --threads 2"
expect 0 $small --config ds.json --json
whole=$(number peak_bytes)
baseline=$(number baseline_bytes)
limit=$((whole * 6 / 10 + baseline))
expect 0 $small --config ds.json --device-memory $limit
says '^It does not fit on that machine'
expect 0 $small --config ds.json --device-memory $limit --fit --output fit.json
says '^chosen +micro batch (16|8|4|2|1), accumulation [0-9]+, recompute (none|unit|auto within [0-9.]+ [KMG]iB), step_order'
says '^as given +micro batch 32, accumulation 1, '
says ': does not fit; predicted '
says '^why +the least predicted time of what fits, of [0-9]+ plans; '
says '^chosen by +machine.json: elsewhere other settings may be chosen, and a micro batch or an order may decide bits; '
grep -q '"train_batch_size": 32' fit.json || fail "the global batch is not kept: $(cat fit.json)"
expect 0 $small --config ds.json --device-memory $limit --fit # to standard output
cmp -s out fit.json || fail "the config on standard output is another one"
grep -q '^chosen ' err || fail "what was chosen is not said"
expect 0 $small --config ds.json --device-memory $limit --fit --json --output same.json
cmp -s same.json fit.json || fail "with --json the config is another one"
sed -n '/^  "config": {/,/^  }/p' out | sed '1s/.*/{/' >inside.json
sed -n '/"chosen"/,/"as_given"/p' out >chosen.json
for key in zero_stage micro_batch_size gradient_accumulation_steps recompute activation_memory \
    tile_tokens step_order overlap_comm optimizer_on_disk parameters_on_disk gradients_on_disk \
    activations_on_disk; do
    grep -q "^    \"$key\": " chosen.json || fail "what was chosen lacks $key: $(cat chosen.json)"
done
chosen=$(sed -n '/"chosen"/,/"as_given"/s/.*"peak_bytes": \([0-9]*\).*/\1/p' out)
expect 0 plan --config inside.json --machine machine.json --threads 2 --device-memory $limit --json
[ "$(number peak_bytes)" = "$chosen" ] || fail "the object has another config than what it chose"
expect 0 plan --config fit.json --machine machine.json --threads 2 --device-memory $limit --json
planned=$(number peak_bytes)
[ "$planned" = "$chosen" ] || fail "the object says $chosen, the config's plan $planned"
[ "$planned" -le $((limit - baseline)) ] || fail "what was chosen takes $planned of $limit"
expect 0 train --config fit.json --data "$SOURCE/docs/config.md" --output trained --threads 2 --json
measured=$(number measured_bytes)
[ "$(number planned_bytes)" = "$planned" ] || fail "the run plans otherwise"
[ "$measured" -le $limit ] || fail "the run takes $measured of $limit"
grep -q '"loss": [0-9]' out || fail "the run has no loss"
# The command that is printed runs as it stands, with paths that a shell takes apart.
expect 0 $small --config ds.json --data "$SOURCE/docs/config.md" --device-memory $limit --fit \
    --output "it's a fit.json"
command=$(sed -n 's/^  *sifr \(train .*\)/\1/p' out)
[ "$command" = "train --config 'it'\\''s a fit.json' --output 'it'\\''s a fit-run'" ] ||
    fail "the command: $command"
eval "\"\$SIFR\" $command" >out 2>err || fail "the command of plan --fit: $(cat err)"
[ -e "it's a fit-run/model.safetensors" ] || fail "the command of plan --fit made no model"
expect 0 $small --config ds.json --world-size 2 --fit --output two.json
says '^ +sifr train --config two.json --ranks 2 --data PATH --output two-run$'
expect 0 $small --config ds.json
says "^ +beyond the model's 256 positions$"
expect 3 $small --config ds.json --device-memory 32MiB --fit --output none.json
complains '^sifr plan: --fit: nothing fits: a rank may take .*, and the nearest settings \(micro batch 1, accum'
[ ! -e none.json ] || fail "a config was written that does not fit"
expect 2 $small --config ds.json --fit --dump
complains '^sifr plan: --fit writes a config: '
expect 1 $small --config ds.json --fit --output missing/fit.json

# several ranks: a stage is chosen, and what overlap_comm is by default follows it
expect 0 $small --config ds.json --world-size 4 --device-memory 10GiB --fit --output all.json
says '^chosen +ZeRO stage [0-3], micro batch 8, accumulation 1, recompute none'
expect 0 $small --config ds.json --world-size 4 --per-device-train-batch-size 8 --json
least=$(($(number peak_bytes) / 3 + baseline))
expect 0 $small --config ds.json --world-size 4 --device-memory $least --fit --output few.json
says '^chosen +ZeRO stage [123], micro batch [124], accumulation [248], '

# What --fit wrote may be written again; what is no config of its own stays.
expect 0 $small --config ds.json --device-memory $limit --fit --output same.json
echo '{"prompt": "a", "completion": "b"}' >one-row.jsonl
cp "$SOURCE/examples/ds_config_nvme.json" by-hand.json
for file in one-row.jsonl small/config.json small/tokenizer.json config.json by-hand.json; do
    cp $file before
    expect 2 $small --config ds.json --device-memory $limit --fit --output $file
    complains "^sifr plan: --output $file: the file exists and is no config that --fit wrote; name another$"
    cmp $file before || fail "$file is replaced"
done

# --- a run that does not fit here: refused before anything is taken ---
# A control group's limit, as a namespace of ours shows it: of a gigabyte 400 MB are held.
cat >limited <<'END'
mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/memory && cd /sys/fs/cgroup || exit 77
echo 1000000000 | tee memory.max >memory/memory.limit_in_bytes
printf 'anon 300000000\nfile 900000000\nshmem 100000000\n' >memory.stat
printf 'rss 5\ntotal_rss 300000000\ntotal_cache 9\ntotal_shmem 100000000\n' >memory/memory.stat
cd "$1" && shift && exec "$@"
END
limited() { unshare -m sh "$PWD/limited" "$PWD" "$@"; }
has_ranks() { "$SIFR" doctor --json | grep -q '"launcher": "'; }
run="--model small --bf16 --seq-length 256 --data $SOURCE/docs/config.md --threads 1 --max-steps 1"
if limited true 2>log; then
    expect_limited() { local code=0; limited "$SIFR" "$@" >out 2>err || code=$?; [ $code = 0 ] || fail "$*"; }
    expect_limited plan --model small --config ds.json --threads 1 --json
    [ "$(sed -n 's/^ *"room_bytes": \([0-9]*\).*/\1/p' out)" = 600000000 ] || fail "not what the group leaves"
    largest=$(number largest_micro_batch_size)
    [ "$largest" -ge 8 ] || fail "the largest micro batch is $largest"
    code=0
    limited "$SIFR" train $run --output refused --per-device-train-batch-size $((2 * largest)) \
        >out 2>err || code=$?
    [ $code = 3 ] || fail "twice what fits: exit code $code"
    complains '^sifr train: memory: the run takes .*, and 572 MiB is what the control group leaves; it fits with '
    change='(sifr.recompute auto|train_micro_batch_size_per_gpu [0-9]+ with gradient_accumulation_steps [0-9]+)'
    complains "it fits with $change: [0-9.]+ MiB per rank\$"
    [ ! -e refused ] || fail "the output of a run that was refused is there"
    if has_ranks; then # each rank fits by itself, but not both
        code=0
        limited "$SIFR" train $run --output refused --ranks 2 \
            --per-device-train-batch-size $((largest * 2 / 3)) >out 2>err || code=$?
        [ $code = 3 ] || fail "two ranks that do not fit together: exit code $code"
        complains 'memory: 2 ranks of this host take [0-9]+ MiB each, [0-9.]+ [MG]iB together .* control group'
        complains '; it fits with '
        [ ! -e refused ] || fail "the output of ranks that were refused is there"
    fi
else
    echo "no namespaces here: limits of control groups are not tested"
fi
