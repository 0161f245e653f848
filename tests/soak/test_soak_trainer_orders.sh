# label: soak
# timeout: 1800, not under sanitizers
# transformers' Trainer on sifr by the data set's own order, which has the bits of `sifr train`, and
# masked LM: on one rank, on two, and on from a checkpoint of the other; the types of its files, by
# mypy. Skipped where pip cannot get the packages.
. "$SOURCE/tests/support/trainer_rows.sh"
. "$SOURCE/tests/support/find_mpi.sh"
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
"$venv/bin/mypy" --strict --cache-dir mypy \
    "$SOURCE"/python/sifr/integrations/{transformers,_trainer_*}.py || fail "types"
