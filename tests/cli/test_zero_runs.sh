# label: full
# Promises 1 and 3 on real ranks, started as a user starts them: the same weights and figures to the
# last bit at every stage and at 1, 2, 4 and 8 ranks, whatever else is turned; 3, 5, 6 and 7 within
# rounding; bytes and calls on the wire as the table says; resumed at other stages and rank counts.
# With SIFR_TEST_WHOLE (tests/soak/test_soak_whole.sh) all models at all of these.
# timeout: 600, not under sanitizers (MPI keeps what it took)
fail() { echo "FAILED: $1" >&2; exit 1; }
whole=${SIFR_TEST_WHOLE:-}
trap 'kill $(jobs -p) 2>/dev/null || :; wait || :' EXIT
if ! "$SIFR" doctor --json | grep -q '"launcher": "'; then
    echo "skipped: no MPI and launcher here: ranks are not tested"
    exit 77
fi

bits() { sha256sum <"$1/model.safetensors"; }
# All columns but speed, memory and time.
figures() { cut -d, -f1-5,7,10,12- "$1/metrics.csv"; }
same() { # DIRECTORY REFERENCE WHAT
    [ "$(bits "$1")" = "$(bits "$2")" ] || fail "$3: other weights"
    figures "$1" >have.csv
    figures "$2" | diff - have.csv >difference || fail "$3: other figures: $(cat difference)"
}

head -c 24000 "$SOURCE/docs/config.md" >text
head -c 2000 text >held
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >log
"$SIFR" tokenize --tokenizer tok --data text --output store >log
config() { # NAME JSON: a model folder of three small blocks
    echo "$2" >$1.json
    "$SIFR" init --config $1.json --tokenizer tok --output $1 --seed 3 >log
}
llama='"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
    "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64'
config untied "{$llama, \"tie_word_embeddings\": false}"
config tied "{$llama, \"tie_word_embeddings\": true}"
config gpt2 '{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 300,
    "n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 64}' # with dropout

# What steers the transfers and must not change a result. 0: the table's own case, nothing ahead and
# nothing kept.
keys() {
    case $1 in
    0) echo ', "stage3_prefetch_bucket_size": 0, "stage3_max_reuse_distance": 0,
        "stage3_param_persistence_threshold": 0, "overlap_comm": false' ;;
    1) echo ', "stage3_prefetch_bucket_size": 5e7, "stage3_max_live_parameters": 1e9,
        "stage3_max_reuse_distance": 1e9, "stage3_param_persistence_threshold": 10000,
        "reduce_bucket_size": 5e8, "allgather_bucket_size": 5e8' ;; # DeepSpeed's, but for one
    2) echo ', "stage3_prefetch_bucket_size": 40000, "stage3_max_live_parameters": 60000,
        "stage3_max_reuse_distance": 30000, "stage3_param_persistence_threshold": 16000,
        "reduce_bucket_size": 20000, "allgather_bucket_size": 20000, "overlap_comm": true' ;;
    3) echo ', "stage3_prefetch_bucket_size": 1000000, "stage3_max_reuse_distance": 0,
        "stage3_param_persistence_threshold": 20000,
        "stage3_model_persistence_threshold": 18000, "sub_group_size": 1000' ;;
    esac
}
sums=fp32 # of gradients
settings() { # STAGE KEYS GLOBAL_BATCH PRECISION
    cat >ds.json <<J
{"train_batch_size": $3, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.01}},
 "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 1e-3, "warmup_num_steps": 4}},
 "bf16": {"enabled": $([ $4 = bf16 ] && echo true || echo false)},
 "fp16": {"enabled": $([ $4 = fp16 ] && echo true || echo false), "initial_scale_power": 18},
 "data_types": {"grad_accum_dtype": "$sums"}, "zero_optimization": {"stage": $1$(keys $2)},
 "sifr": {"seq_length": 32, "max_steps": 4, "logging_steps": 1, "max_eval_windows": 4}}
J
}
train() { # OUTPUT RANKS OPTION...
    rm -rf "$1"
    "$SIFR" train --config ds.json --data store --eval-data held --output "$1" --ranks "$2" \
        --json "${@:3}" >json 2>err || fail "$case: exit code $?: $(tail -n 5 err)"
}

# The wire: OPERATION KEY of the first rank's ledger.
wire() {
    awk -v operation="\"$1\":" -v key="\"$2\":" '
        $1 == operation { inside = 1 }
        inside && $1 == key { gsub(",", "", $2); print $2; exit }' json
}
# Of one step, from the sizes of the parameters alone: "BYTES CALLS" gathered or reduced. A unit is
# padded to blocks of 1,024 elements times ranks; the last columns of the table are passes over it.
table() { # OPERATION MODEL STAGE RANKS ORDER BYTES_OF_PARAMETERS
    local sum=4
    [ $sums = fp32 ] || sum=2
    awk -v operation=$1 -v model=$2 -v stage=$3 -v n=$4 -v order=$5 -v wide=$6 -v sum=$sum '
        function blocks(elements) { return int((elements + 1023) / 1024) }
        function pass(unit, width, times) {
            bytes += times * int((unit + n - 1) / n) * 1024 * (n - 1) * width
            calls += times
        }
        BEGIN {
            h = 48; head = 2 * blocks(h)
            if (model == "gpt2") {
                embedding = blocks(300 * h) + blocks(64 * h)
                block = 6 * blocks(h) + blocks(3 * h) + blocks(3 * h * h) + blocks(h * h) \
                    + 2 * blocks(4 * h * h) + blocks(4 * h)
            } else {
                embedding = blocks(300 * h)
                block = 2 * blocks(h) + 2 * blocks(h * h) + 2 * blocks(h * h / 2) + 3 * blocks(104 * h)
                head = blocks(h) + (model == "untied" ? embedding : 0)
            }
            tied = model != "untied"
            k = stage >= 2 && order == "batch" ? 8 / n : 1
            for (u = 0; u < 5 && n > 1; u++) {
                size = u == 0 ? embedding : u == 4 ? head : block
                uses = u == 0 && tied ? 2 : 1
                if (operation == "reduced") pass(size, sum, k * uses)
                else if (stage == 0) pass(size, sum, 1)
                else if (stage < 3) pass(size, wide, 1)
                else pass(size, wide, k * (u == 0 ? uses : u == 4 ? 1 : 2))
            }
            print bytes + 0, calls + 0
        }'
}
check_wire() { # MODEL STAGE RANKS ORDER BYTES KEYS
    local operation want
    for operation in gathered reduced; do
        [ "$(wire $operation bytes)" = "$(wire $operation planned)" ] ||
            fail "$case: $(wire $operation bytes) bytes $operation, not the plan's" \
                "$(wire $operation planned)"
        # what stays gathered at stage 3 is not the table's
        [ $2 = 3 ] && [ $6 != 0 ] && [ $operation = gathered ] && continue
        want=$(table $operation $1 $2 $3 $4 $5 | awk '{ print 4 * $1, 4 * $2 }')
        [ "$(wire $operation bytes) $(wire $operation calls)" = "$want" ] ||
            fail "$case: $operation $(wire $operation bytes) bytes in $(wire $operation calls)" \
                "calls, the table says $want"
    done
}

# --- the same bits: stages x ranks in full; models, precisions, orders, recomputation, threads and
# keys so that each meets each ---
orders=(batch unit) recomputes=(none unit) names=(tied untied gpt2) counts=(1 2 4 8)
precisions=(fp32 bf16 fp16) widths=(4 2 2)
begun=$SECONDS
runs=0
for m in 0 1 2; do
    model=${names[m]}
    for s in 0 1 2 3; do
        for r in 0 1 2 3; do
            # Of the second and third model, in a suite, half, and the run that others are held to.
            [ "$whole" ] || [ $m = 0 ] || [ $((s + r)) = 0 ] || [ $(((m + s + r) % 2)) = 0 ] ||
                continue
            order=${orders[$(((2 * m + 2 * s + 3 * r) / 2 % 2))]} key=$(((m + s + r) % 4))
            recompute=${recomputes[$(((m + 3 * s) % 2))]} threads=$(((3 * m + s) / 2 % 2 + 1))
            [ $r -lt 3 ] || threads=1 # 16 on few cores would wait for each other
            case="$model ${precisions[m]}, stage $s, ${counts[r]} ranks, order $order, keys $key"
            case="$case, recompute $recompute, $threads threads"
            settings $s $key 8 ${precisions[m]}
            out=$model-$s-${counts[r]}
            train $out ${counts[r]} --model $model --step-order $order --recompute $recompute \
                --threads $threads
            same $out $model-0-1 "$case"
            check_wire $model $s ${counts[r]} $order ${widths[m]} $key
            [ $out = $model-0-1 ] || rm -r $out
            runs=$((runs + 1))
        done
    done
    [ "$(wc -l <$model-0-1/metrics.csv)" = 6 ] || fail "$case: $(cat $model-0-1/metrics.csv)"
done
cmp -s tied-0-1/model.safetensors tied/model.safetensors && fail "nothing was learned"
[ $runs = 48 ] || [ ! "$whole" ] || fail "only $runs runs"
echo "the same bits and the table's wire in $runs runs: $((SECONDS - begun)) s"

# --- sums of gradients in 16 bits: other bits, and those at every stage and rank count ---
sums=bf16
for each in 0:1:batch 1:4:unit 2:2:batch 2:8:unit 3:4:batch; do
    IFS=: read -r stage ranks order <<<"$each"
    case="16-bit sums, stage $stage, $ranks ranks, order $order"
    settings $stage 0 8 bf16
    train narrow-$ranks-$stage $ranks --model untied --step-order $order --threads 1
    same narrow-$ranks-$stage narrow-1-0 "$case"
    check_wire untied $stage $ranks $order 2 0
done
cmp -s narrow-1-0/model.safetensors untied-0-1/model.safetensors && fail "16-bit sums change nothing"
sums=fp32

# --- rank counts that are no power of two: right, within rounding ---
# Norm of the difference of two models' weights, over that of what the second one learned from the
# first weights. Files of one model have one layout: a header of the same length.
distance() { # MODEL DIRECTORY REFERENCE
    local header directory
    header=$(od -An -tu8 -N8 "$2/model.safetensors")
    for directory in "$@"; do
        od -An -v -tf4 -w4 -j$((header + 8)) "$directory/model.safetensors" >"$directory.values"
    done
    paste "$1.values" "$2.values" "$3.values" | awk '
        { difference += ($2 - $3) ^ 2; learned += ($3 - $1) ^ 2; if ($2 != $2 + 0) bad = 1 }
        END { print bad || NR < 1000 ? "none" : sqrt(difference / learned) }'
}
for each in 3:3:unit 5:2:batch 6:3:batch 7:1:unit; do
    IFS=: read -r ranks stage order <<<"$each"
    case="$ranks ranks, stage $stage, order $order"
    settings $stage 0 $((3 * ranks)) fp32
    train odd-1 1 --model tied
    train odd $ranks --model tied --step-order $order
    for operation in gathered reduced; do
        [ "$(wire $operation bytes)" = "$(wire $operation planned)" ] || fail "$case: the wire"
    done
    paste -d, odd/metrics.csv odd-1/metrics.csv | awk -F, '
        function off(a, b) { return b == 0 ? a : (a > b ? a - b : b - a) / b }
        { other = NF / 2 }
        NR > 1 && $3 != "" && (off($3, $(other + 3)) > 1e-5 || off($4, $(other + 4)) > 1e-4) {
            bad = 1
        }
        NR > 1 && $12 != "" && off($12, $(other + 12)) > 1e-5 { bad = 1 }
        END { exit bad || NR < 6 }' || fail "$case: $(paste odd/metrics.csv odd-1/metrics.csv)"
    off=$(distance tied odd odd-1)
    awk -v off="$off" 'BEGIN { exit !(off != "none" && off < 1e-3) }' ||
        fail "$case: weights differ by $off of what was learned"
    echo "$case: off by $off"
done

# --- resumed at other stages and rank counts: the same bits and figures ---
settings 0 1 8 bf16
sed -i 's/"max_steps": 4/"max_steps": 120, "eval_steps": 60, "save_total_limit": 1/' ds.json
train straight 1 --model gpt2
case="stopped at step 60"
sed -i 's/"stage": 0/"stage": 3/' ds.json
train resumed 4 --model gpt2 --max-steps 60
rm resumed/model.safetensors
sed -i 's/"stage": 3/"stage": 1/' ds.json
resume() { # RANKS: goes on with `resumed`
    "$SIFR" train --config ds.json --data store --eval-data held --output resumed --ranks $1 \
        --model gpt2 --resume >out 2>err &
}
case="resumed from stage 3 on 4 ranks at stage 1 on 2"
resume 2
run=$!
until [ "$( (cat resumed/metrics.csv 2>/dev/null || :) | wc -l)" -gt 66 ]; do
    kill -0 $run 2>/dev/null || fail "$case: $(cat err)"
    sleep 0.01
done
kill -TERM $run
code=0
wait $run || code=$?
[ $code = 143 ] || fail "$case, SIGTERM: exit code $code: $(cat out err)"
# MPICH's launcher passes on every signal as SIGTERM, so ranks cannot tell which it was
grep -qE 'stopped by (SIGTERM.*|a signal) after step' out || fail "$case: $(cat out)"
[ ! -e resumed/model.safetensors ] || fail "$case: it was not stopped in the middle"
case="resumed from stage 1 on 2 ranks at stage 2 on 8"
sed -i 's/"stage": 1/"stage": 2/' ds.json
resume 8
wait $! || fail "$case: $(cat err)"
grep -q 'resumed from checkpoint-' out || fail "$case: not resumed: $(cat out)"
same resumed straight "$case"

# --- PyTorch's steps, on four real ranks ---
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
options=
launcher=$("$SIFR" doctor --json | sed -n 's/^ *"launcher": "\(.*\)",$/\1/p') # of its own MPI
$launcher --version | grep -qE 'Open MPI|OpenRTE' && options="--oversubscribe --bind-to none"
$launcher -n 4 $options "$BUILD/tests/test_golden_steps" >out 2>&1 || fail "PyTorch: $(cat out)"
grep -q '^4 ranks are right' out || fail "PyTorch: $(cat out)"
echo "all: $SECONDS s"
