# label: soak
# timeout: 1800, not under sanitizers
# transformers' Trainer on sifr, in an environment with PyPI's packages: training with the bits of
# `sifr train`, evaluation, folders, resume, callbacks, adapters, what is refused, and the page
# docs/transformers-trainer.md with its example; types by mypy; then two ranks, and checkpoints that
# one rank and two go on from. Skipped where pip cannot get the packages.
. "$SOURCE/tests/support/python.sh"
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/small_llama.sh"
venv=$BUILD/python-soak # test_soak_python's, for its torch
packages="numpy==2.4.6 torch==2.15.0 safetensors==0.8.0 transformers==5.24.0 accelerate==1.15.0
    peft==0.21.2 trl==1.16.0 datasets==5.2.0 mypy==2.4.1"
if ! "$venv/bin/python" -c 'import transformers, accelerate, peft, trl, datasets, mypy' 2>/dev/null; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install $packages; } >pip.log 2>&1 ||
        { tail -n 3 pip.log; echo "no $packages from PyPI: skipped"; exit 77; }
fi
export PYTHONPATH=$PYTHONPATH:$SOURCE/tests/soak:$SOURCE/tests/python HF_HUB_OFFLINE=1
python=$venv/bin/python
llama_model llama 32 2 false
python3 - <<'P'
import json

lines = [line[:50] for line in open("text").read().split("\n") if len(line) > 20]
for name, some in (("rows.jsonl", lines[:72]), ("held.jsonl", lines[72:93])):
    with open(name, "w") as file:
        for line in some:
            file.write(json.dumps({"text": line}) + "\n")
P
cat >ds.json <<'J'
{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.01}},
 "sifr": {"model": "llama", "data": ["rows.jsonl"], "data_type": "text", "seq_length": 32,
          "threads": 1, "lr_scheduler_type": "linear", "warmup_steps": 2,
          "no_decay": "transformers", "max_steps": 12}}
J
expect 0 "$SIFR" train --config ds.json --output by_program
for part in runs refused adapters others; do
    "$python" "$SOURCE/tests/soak/trainer_$part.py" >$part.log 2>&1 ||
        { tail -n 30 $part.log; fail "trainer_$part.py"; }
done
"$venv/bin/mypy" --strict --cache-dir mypy \
    "$SOURCE"/python/sifr/integrations/{transformers,_trainer_*}.py || fail "types"

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

# The data set's order and masked LM: on one rank, on two, and on from a checkpoint of the other.
expect 0 "$SIFR" train --config ds.json --max-steps 9 --output in_order
orders() { # OUTPUT FROM LAUNCHER…
    local output=$1 from=$2
    timeout 200 "${@:3}" "$python" "$SOURCE/tests/soak/trainer_orders.py" $output $from \
        >orders.log 2>&1 || { tail -n 30 orders.log; fail "$output: orders"; }
}
orders one '' env
orders two '' "$launcher" -n 2 $options
orders two_of_one one "$launcher" -n 2 $options
orders one_of_two two env
cmp in_order/model.safetensors one/sequential_model/model.safetensors || fail "sequential: bits"
for output in two two_of_one one_of_two; do
    for run in sequential masked; do
        cmp one/${run}_model/model.safetensors $output/${run}_model/model.safetensors ||
            fail "$run: other bits of $output"
    done
done
echo "$(echo $packages)"
