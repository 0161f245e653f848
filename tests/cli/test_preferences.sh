# label: short
# Preferences as a user trains on them: five steps of TRL's losses and rewards (golden/preference),
# the reference from a file and from the model itself, resuming, evaluation, forms of rows, and what
# is refused.
# timeout: 300
. "$SOURCE/tests/support/expect.sh"
sifr() { "$SIFR" "$@"; }
complains() { grep -qF "$1" err || { cat err; fail "no '$1'"; }; }
. "$SOURCE/tests/support/trl_steps.sh"
run() { # CODE OUTPUT OPTION…
    local code=$1 output=$2
    shift 2
    rm -rf "$output"
    expect "$code" sifr train --model model --output "$output" --seq-length 48 --threads 1 \
        --data pairs.jsonl --per-device-train-batch-size 8 --logging-steps 1 "$@"
}

# --- TRL's five steps ---
for loss in sigmoid hinge ipo orpo; do
    run 0 $loss --config ds.json --preference $loss
    compare $loss $loss
done
grep -q '4 pairs' out err || fail "pairs are not counted"

# --- the same reference from a file, and micro batches of a pair: the same weights ---
whole=$(sha256sum <sigmoid/model.safetensors)
expect 0 sifr score --model model --data pairs.jsonl --seq-length 48 --output scores.safetensors \
    --precision fp32 --threads 1
run 0 again --config ds.json --preference sigmoid --reference scores.safetensors
[ "$(sha256sum <again/model.safetensors)" = "$whole" ] || fail "the reference of a file is another"
run 0 parts --config ds.json --preference sigmoid --save-steps 2
rm -rf parts/checkpoint-5 parts/model.safetensors
echo checkpoint-2 >parts/latest
expect 0 sifr train --model model --output parts --seq-length 48 --threads 1 --data pairs.jsonl \
    --per-device-train-batch-size 8 --logging-steps 1 --config ds.json --preference sigmoid \
    --save-steps 2 --resume
[ "$(sha256sum <parts/model.safetensors)" = "$whole" ] || fail "resumed to other weights"
rm parts/data/reference.safetensors
rm -rf parts/checkpoint-5 parts/model.safetensors
echo checkpoint-2 >parts/latest
expect 1 sifr train --model model --output parts --seq-length 48 --threads 1 --data pairs.jsonl \
    --per-device-train-batch-size 8 --logging-steps 1 --config ds.json --preference sigmoid \
    --save-steps 2 --resume
complains "this run's reference is gone"

# --- from another model's file, which a resumed run says ---
expect 0 sifr score --model again --data pairs.jsonl --seq-length 48 --output others.safetensors \
    --precision fp32 --threads 1
run 0 given --config ds.json --preference sigmoid --reference scores.safetensors --save-steps 2
for file in scores others; do
    rm -rf given/checkpoint-[45]
    echo checkpoint-2 >given/latest
    expect 0 sifr train --model model --output given --seq-length 48 --threads 1 \
        --data pairs.jsonl --per-device-train-batch-size 8 --logging-steps 1 --config ds.json \
        --preference sigmoid --reference $file.safetensors --save-steps 2 --resume
    [ $file != scores ] || ! grep -q 'results will differ' err || { cat err; fail "it is the same"; }
done
complains 'made with sifr.preference.reference (hash)'

# --- evaluation ---
run 0 held --config ds.json --preference sigmoid --eval-data pairs.jsonl
grep -q '"eval_rewards/accuracies":1' held/metrics.jsonl || fail "no rewards in the evaluation"
grep -q 'eval_perplexity":' held/metrics.jsonl && fail "a perplexity of pairs"

# --- forms of rows ---
cat >whole.jsonl <<'J'
{"chosen": "Say a colour: red", "rejected": "Say a colour: seven"}
{"chosen": "Two and two is four", "rejected": "Two and two is red"}
J
expect 0 sifr data inspect --model model --data whole.jsonl --seq-length 48 --color never
grep -q 'Say a colour:⟦ red' out || { cat out; fail "no prompt was found"; }
expect 0 sifr data inspect --model model --data pairs.jsonl --json
grep -q '"pairs": 4, "rows": 8' out || { cat out; fail "no pairs"; }

# --- what is refused ---
refused() { # MESSAGE OPTION…
    local message=$1
    shift
    run 2 refused --config ds.json "$@"
    complains "$message"
}
refused 'give an even number' --preference sigmoid --per-device-train-batch-size 3
refused 'orpo has no reference' --preference orpo --reference scores.safetensors
refused 'packing' --preference sigmoid --packing
refused 'give --preference sigmoid (DPO)'
echo '{"text": "a"}' >plain.jsonl
rm -rf refused
expect 2 sifr train --model model --output refused --seq-length 48 --threads 1 --data plain.jsonl \
    --preference sigmoid --max-steps 1
complains 'must be rows with a chosen and a rejected answer'
head -n 3 pairs.jsonl >three.jsonl
expect 0 sifr score --model model --data three.jsonl --seq-length 48 --output three.safetensors
run 1 refused --config ds.json --preference sigmoid --reference three.safetensors
complains 'scores of 6 rows, but the data have 8'
sed 's/ red/ tan/' pairs.jsonl >others.jsonl
expect 0 sifr score --model model --data others.jsonl --seq-length 48 --output others.safetensors
run 1 refused --config ds.json --preference sigmoid --reference others.safetensors
complains 'are of other tokens'
run 1 refused --config ds.json --preference sigmoid --reference model/model.safetensors
complains 'no file of scores'
echo '{"prompt": "a", "chosen": "b", "rejected": ["c"]}' >pairs.jsonl
run 1 refused --config ds.json --preference sigmoid
complains "row 1, line 1"
