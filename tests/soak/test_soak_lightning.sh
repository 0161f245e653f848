# label: soak
# timeout: 1200, not under sanitizers
# Lightning's real Trainer on sifr: the bits of the program, checkpoints in folders, epochs,
# callbacks, loggers, every refusal; two ranks under Open MPI and MPICH; docs/lightning.md. Skipped
# where pip cannot get the packages.
. "$SOURCE/tests/support/python.sh"
. "$SOURCE/tests/support/page.sh"
. "$SOURCE/tests/support/small_llama.sh"
. "$SOURCE/tests/support/same_windows.sh"
venv=$BUILD/python-soak # of test_soak_python, too: torch is large
packages="lightning==2.6.6 torch==2.15.0 numpy==2.4.6 tensorboardX==2.6.5 mlflow-skinny==3.17.2"
if ! "$venv/bin/python" -c 'import lightning, mlflow, tensorboardX' 2>/dev/null; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install $packages mypy==2.4.1; } >pip.log 2>&1 ||
        { tail -n 3 pip.log; echo "no $packages from PyPI: skipped"; exit 77; }
fi
export PATH=$venv/bin:$PATH
llama_model llama 32 2 false
cat >ds.json <<'J'
{"train_micro_batch_size_per_gpu": 2, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "scheduler": {"type": "WarmupCosineLR",
  "params": {"warmup_num_steps": 2, "total_num_steps": "auto"}},
 "sifr": {"seq_length": 32, "threads": 1}}
J
sed 's/^{/{"zero_optimization": {"stage": 2}, /' ds.json >zero2.json
same_windows store
expect 0 "$SIFR" train --config ds.json --model llama --data store --output by_program \
    --max-steps 5 --gradient-accumulation-steps 2
python "$SOURCE/tests/soak/lightning_runs.py" >runs.log 2>&1 || fail "$(tail -n 30 runs.log)"
two_ranks() { # with the MPI of SIFR_MPI, and one rank that goes on from what they have saved
    . "$SOURCE/tests/support/find_mpi.sh"
    rm -rf two_* one_rank_on
    timeout 300 "$launcher" -n 2 $options "$venv/bin/python" \
        "$SOURCE/tests/soak/lightning_ranks.py" >ranks.log 2>&1 || fail "$(tail -n 30 ranks.log)"
    [ "$(grep -c 'is done$' ranks.log)" = 2 ] || fail "not both ranks: $(tail ranks.log)"
    python "$SOURCE/tests/soak/lightning_ranks.py" >one.log 2>&1 || fail "$(tail -n 30 one.log)"
    for output in two_ranks two_ranks_on one_rank_on; do
        cmp by_program/model.safetensors $output/model.safetensors || fail "$output: other bits"
    done
}
tried=
for SIFR_MPI in openmpi mpich; do
    export SIFR_MPI
    code=0
    (two_ranks) || code=$?
    case $code in 0) tried="$tried $SIFR_MPI" ;; 77) ;; *) fail "two ranks with $SIFR_MPI" ;; esac
done
unset SIFR_MPI
mypy --strict --cache-dir mypy "$SOURCE"/python/sifr/integrations/{lightning,deepspeed_like}.py ||
    fail "types"
mv llama model
mv text book.txt
page lightning
echo "$(wc -w <<<"$tried") runs of 2 ranks:${tried:- no MPI}; $(tail -n 1 runs.log)"
