# label: soak
# timeout: 1800, not under sanitizers
# transformers' Trainer on sifr, in an environment with PyPI's packages: training with the bits of
# `sifr train`, evaluation, folders, resume, callbacks, adapters, what is refused, and the page
# docs/transformers-trainer.md with its example; then two ranks. Skipped where pip cannot get the
# packages.
. "$SOURCE/tests/support/trainer_rows.sh"
expect 0 "$SIFR" train --config ds.json --output by_program
for part in runs refused adapters others; do
    "$python" "$SOURCE/tests/soak/trainer_$part.py" >$part.log 2>&1 ||
        { tail -n 30 $part.log; fail "trainer_$part.py"; }
done

# The page, in a folder of its own.
mkdir page
cp -r llama page/model
cp rows.jsonl page
(
    cd page
    . "$SOURCE/tests/support/page.sh"
    PATH=$venv/bin:$PATH
    page transformers-trainer
    diff -B transformers_trainer.py "$SOURCE/examples/transformers_trainer.py" ||
        fail "the page has another program than examples/"
) || fail "the page"

# Ranks.
. "$SOURCE/tests/support/find_mpi.sh"
for stage in 0 3; do
    "$python" "$SOURCE/tests/soak/trainer_ranks.py" alone$stage $stage >alone.log 2>&1 ||
        { tail -n 30 alone.log; fail "one rank, stage $stage"; }
    timeout 200 "$launcher" -n 2 $options "$python" "$SOURCE/tests/soak/trainer_ranks.py" \
        both$stage $stage >both.log 2>&1 || { tail -n 30 both.log; fail "two ranks, stage $stage"; }
    [ "$(grep -c 'is done$' both.log)" = 2 ] || fail "not both ranks: $(cat both.log)"
    for part in run epochs; do
        cmp alone$stage/$part/model.safetensors both$stage/$part/model.safetensors ||
            fail "stage $stage: $part: other bits on two ranks"
    done
    cmp by_program/model.safetensors both$stage/run/model.safetensors || fail "stage $stage: bits"
    cmp alone$stage/metrics.json both$stage/metrics.json || fail "stage $stage: metrics"
done
echo "$(echo $packages)"
