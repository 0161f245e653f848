# label: full
# The last batch of an epoch, where it is not full: the Trainer's and TRL's steps (golden/last_batch);
# the same bits at any stage, number of ranks and tier, and as a step of a batch of just those rows;
# through a checkpoint inside an epoch, and from one made before there were such steps.
# timeout: 300, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/expect.sh"
golden=$SOURCE/tests/golden/last_batch
cp -r "$SOURCE/tests/golden/preference/model" model
cp "$SOURCE/tests/golden/preference/pairs.jsonl" "$golden/rows.jsonl" .
config() { # BATCH MICRO SIFR-KEYS OTHER-KEYS
    cat >ds.json <<J
{"train_batch_size": $1, "train_micro_batch_size_per_gpu": $2, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0}}${4:+, $4},
 "sifr": {"seq_length": 64, "threads": 1${3:+, $3}}}
J
}
train() { # OUTPUT DATA OPTION…
    expect 0 "$SIFR" train --config ds.json --model model --data "$2" --output "$1" "${@:3}"
}
bits() { cat "$1"/*model.safetensors | sha256sum; }
same() { [ "$(bits "$1")" = "$(bits "$2")" ] || fail "$1: not the weights of $2"; }
steps() { sed 's/.*"step":\([0-9]*\),"epoch":\([0-9.]*\),.*/\1 \2/' "$1/metrics.jsonl" | tr '\n' ' '; }
compare() { # OUTPUT CASE: steps, and each value that the golden results have of them
    awk -v name="$2" '
        NR == FNR { if ($1 == name) { want[$2, $3] = $4; if ($2 > last) last = $2 }; next }
        /"loss":/ {
            step++
            for (k in want) {
                split(k, part, SUBSEP)
                if (part[1] != step) continue
                at = index($0, "\"" part[2] "\":")
                got = at ? substr($0, at + length(part[2]) + 3) + 0 : "missing"
                off = got - want[k]
                if (off < 0) off = -off
                if (at && off <= 1e-3 * (want[k] < 0 ? -want[k] : want[k]) + 1e-5) continue
                print "step " step ": " part[2] " is " got ", not " want[k]
                bad = 1
            }
        }
        END { if (step != last) print step " steps, not " last; exit bad || step != last }' \
        "$golden/losses.txt" "$1/metrics.jsonl" || fail "$2 is not the Trainer's"
}

# --- transformers' Trainer and TRL's DPOTrainer ---
linear='"num_train_epochs": 3, "lr_scheduler_type": "linear", "warmup_steps": 2'
config 8 8 "$linear"
train whole rows.jsonl
compare whole whole
grep -q 'data: an epoch of 12 rows is 2 steps, the last one with 4 of 8' out || fail "$(cat out)"
config 8 2 "$linear"
train accumulated rows.jsonl
compare accumulated accumulated
config 8 8 "$linear" '"dataloader_drop_last": true'
train dropped rows.jsonl
compare dropped dropped
grep -q 'data: 4 rows of each epoch are left out, .* (dataloader_drop_last)' out || fail "$(cat out)"
config 6 6 '"num_train_epochs": 2, "preference": {"loss_type": "sigmoid", "beta": 0.5}'
train pairs pairs.jsonl
compare pairs pairs
head -n 3 rows.jsonl >three.jsonl
config 8 8 '' '"dataloader_drop_last": true'
expect 1 "$SIFR" train --config ds.json --model model --data three.jsonl --output few
grep -q '3 rows cannot fill a micro batch of 8, and dataloader_drop_last' err || fail "$(cat err)"

# --- stages, ranks, tiers: of the last step's eight micro batches seven have no row ---
head -n 9 rows.jsonl >nine.jsonl
all() { # STAGE TIERS
    config 8 1 '"num_train_epochs": 2, "save_steps": 1' "\"zero_optimization\": {\"stage\": $1${2:-}}"
}
all 0
train one nine.jsonl
[ "$(steps one)" = '1 0.888888889 2 1.0 3 1.88888889 4 2.0 ' ] || fail "steps: $(steps one)"
for case in 2:1 4:2 4:3; do
    all ${case#*:}
    train r$case nine.jsonl --ranks ${case%:*}
    same r$case one
done
disk='{"device": "nvme", "nvme_path": "."}'
all 3 ", \"offload_optimizer\": $disk, \"offload_param\": $disk"
train tiers nine.jsonl --ranks 2
same tiers one
all 0
train stages nine.jsonl --ranks 2 --pipeline-stages 2
same stages one

# --- resuming inside an epoch; the choice belongs to the run ---
cp -r one cut
rm -r cut/checkpoint-[234] cut/model.safetensors
cp -r cut older
all 2
train cut nine.jsonl --ranks 2 --resume
same cut one
config 8 1 '"num_train_epochs": 2' '"dataloader_drop_last": true'
expect 2 "$SIFR" train --config ds.json --model model --data nine.jsonl --output cut --resume
grep -q 'made with dataloader_drop_last false, but this run has true' err || fail "$(cat err)"
# A version before wrote no such field: its batches ran on into the next epoch.
"$BUILD/tests/older_manifest" older/checkpoint-1 agree.dataloader_drop_last
config 8 1 '"num_train_epochs": 3, "save_steps": 1'
train older nine.jsonl --resume
grep -q 'older: its checkpoints are of a version whose batches of rows ran on' out || fail "$(cat out)"
[ "$(steps older)" = '1 0.888888889 2 1.77777778 3 2.66666667 ' ] || fail "steps: $(steps older)"
want=$(bits older)
rm -r older/checkpoint-3 older/model.safetensors
train older nine.jsonl --resume
[ "$(bits older)" = "$want" ] || fail "resumed once more it has other weights"

# One of text lacks it too, and is no older one: its resume on rows is refused, and that alone is said.
config 8 1 '"max_steps": 1, "save_steps": 1'
cat "$SOURCE"/docs/*.md | head -c 20000 >text
train of-text text
config 8 1 '"max_steps": 2, "save_steps": 1'
expect 2 "$SIFR" train --config ds.json --model model --data nine.jsonl --output of-text --resume
! grep 'of a version' out err || fail "text is called older"

# --- as a batch of just those rows ---
alike() { # NAME DATA ROWS MICRO SIFR-KEYS OTHER-KEYS
    for batch in $3 $((2 * $3)); do
        config $batch $4 "\"num_train_epochs\": 2${5:+, $5}" "${6:-}"
        train $1-$batch $2
    done
    same $1-$((2 * $3)) $1-$3
    [ "$(grep -c loss $1-$3/metrics.jsonl)" = 2 ] || fail "$1: $(cat $1-$3/metrics.jsonl)"
}
head -n 4 rows.jsonl >four.jsonl
alike fp32 four.jsonl 4 2
alike fp16 four.jsonl 4 2 '' '"fp16": {"enabled": true, "loss_scale": 64}'
alike packed rows.jsonl 4 1 '"packing": true'
alike weights four.jsonl 4 2 '"group_by_length": true, "lora": {"lora_dropout": 0.2}' \
    '"bf16": {"enabled": true}'
alike sigmoid pairs.jsonl 8 4 '"preference": {"loss_type": "sigmoid"}'
alike orpo pairs.jsonl 8 2 '"preference": {"loss_type": "orpo"}'
awk '{ print "{\"text\": " substr($0, 10, length($0) - 10) ", \"label\": \"" NR % 2 "\"}" }' \
    four.jsonl >labels.jsonl
alike labels labels.jsonl 4 2 '"task": "sequence_classification"'
