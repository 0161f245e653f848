# label: full
# timeout: 600, not under sanitizers, runs alone
# The demo, with few steps: every part of it, and a second run that makes nothing again.
fail() { echo "$1" >&2; cat out >&2; exit 1; }
command -v bible >/dev/null || { echo "the package bible-kjv is not installed"; exit 77; }
mkdir build
ln -s "$SIFR" build/sifr
export DEMO_STEPS=20
"$SOURCE/scripts/demo.sh" "$PWD/build" >out 2>&1 || fail "the demo fails"
for part in Text Tokenizer 'Token store' Model Training 'The loss' Evaluation 'A sample'; do
    grep -q "^== $part" out || fail "no part '$part'"
done
grep -q '^  loss$' out && grep -q '|\*' out || fail "no curve"
grep -qE 'loss[: ]+[0-9]\.[0-9]+' out || fail "no evaluation"
grep -q '2 ranks, ZeRO stage 3' out || fail "not two ranks at stage 3"
[ -s build/demo/run/model.safetensors ] && [ -s build/demo/run/tokenizer.json ] ||
    fail "no model folder"
sed -n '/^== A sample/,$p' out | grep -q 'And it came to pass [a-z]' || fail "no sample"
first=$(sed -n 's/^{"step":20,.*"loss":\([0-9.]*\).*/\1/p' build/demo/run/metrics.jsonl)

# The second run: the same loss, no preparation, and training begins within two seconds and what
# MPI takes to start two ranks, a second.
begin=$(date +%s%N)
"$SOURCE/scripts/demo.sh" "$PWD/build" 2>&1 |
    while IFS= read -r line; do echo "$((($(date +%s%N) - begin) / 1000000)) $line"; done >out
for part in Text Tokenizer 'Token store' Model; do
    if grep -q "== $part" out; then fail "the second run makes its $part again"; fi
done
second=$(sed -n 's/^{"step":20,.*"loss":\([0-9.]*\).*/\1/p' build/demo/run/metrics.jsonl)
[ -n "$first" ] && [ "$first" = "$second" ] || fail "losses differ: $first, $second"
started=$(sed -n 's/^\([0-9]*\) step: .*/\1/p' out | head -n 1)
[ -n "$started" ] || fail "it never starts to train"
echo "training starts after $started ms"
[ "$started" -lt 3000 ] || fail "training starts after $started ms"
