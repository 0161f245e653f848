# label: full
# A classifier on real ranks: the same weights, losses and scores at 1, 2 and 4 ranks, at ZeRO 0 and
# 3, and through a checkpoint of other ranks.
# timeout: 300, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/ranks.sh"
tiny_model
awk 'BEGIN {
    print "premise,hypothesis,label"
    split("cat dog house", word, " ")
    for (i = 0; i < 50; i++) print "the " word[i % 3 + 1] " sat,my big " word[(i + int(i / 7)) % 3 + 1] "," i % 3
}' >pairs.csv
run() { # RANKS STAGE OUTPUT OPTION…
    local ranks=$1 stage=$2 output=$3
    shift 3
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "zero_optimization": {"stage": $stage},
 "sifr": {"task": "sequence_classification", "seq_length": 32, "max_steps": 12, "eval_steps": 6,
          "save_steps": 6, "eval_data": "pairs.csv", "threads": 1}}
J
    $launcher -n "$ranks" "$SIFR" train --config ds.json --model model --data pairs.csv \
        --output "$output" "$@" >out 2>err || fail "$ranks ranks at stage $stage"
}
bits() { sha256sum <"$1/model.safetensors"; }
# All columns but speed, memory and time.
figures() { cut -d, -f1-5,7,10,12- "$1/metrics.csv"; }
same() {
    [ "$(bits "$1")" = "$(bits one)" ] || fail "$1: other weights"
    figures one >want.csv
    figures "$1" | diff want.csv - >difference || fail "$1: other figures: $(cat difference)"
}
run 1 0 one
grep -q 'eval_accuracy' one/metrics.jsonl || fail "no scores"
for ranks in 2 4; do
    for stage in 0 3; do
        run $ranks $stage "r$ranks-$stage"
        same "r$ranks-$stage"
    done
done
cp -r r4-3 cut
rm -rf cut/checkpoint-12 cut/model.safetensors
echo checkpoint-6 >cut/latest
run 2 0 cut --resume
same cut
