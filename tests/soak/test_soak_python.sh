# label: soak
# timeout: 2400, not under sanitizers
# The Python package as users have it: a wheel that pip builds of the tree, in an environment with
# PyPI's numpy and torch. Arrays of both, torch imported before and after sifr with the same bits,
# state_dict beside safetensors, damaged files; types by mypy. Skipped where pip cannot get them.
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/small_llama.sh"
venv=$BUILD/python-soak
packages="numpy==2.4.6 torch==2.15.0 safetensors==0.8.0 mypy==2.4.1"
if ! "$venv/bin/python" -c 'import torch, numpy, safetensors, mypy' 2>/dev/null; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install $packages; } >pip.log 2>&1 ||
        { tail -n 3 pip.log; echo "no $packages from PyPI: skipped"; exit 77; }
fi
"$venv/bin/pip" wheel "$SOURCE" --no-deps -w wheels >wheel.log 2>&1 || fail "$(tail wheel.log)"
case $(ls wheels) in sifr-*-cp311-abi3-linux_*.whl) ;; *) fail "$(ls wheels)" ;; esac
"$venv/bin/pip" install --force-reinstall --no-deps wheels/*.whl >install.log 2>&1 ||
    fail "$(cat install.log)"
unset PYTHONPATH
llama_model llama 32 2 false
cat >ds.json <<'J'
{"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "sifr": {"model": "llama", "data": ["text"], "seq_length": 32, "threads": 2, "max_steps": 5}}
J
expect 0 "$SIFR" train --config ds.json --output by_program
for order in 'sifr' 'torch, sifr' 'sifr, torch'; do
    name=$(tr -d ', ' <<<"$order")
    "$venv/bin/python" -c "import $order
if 'torch' in '$order': torch.set_flush_denormal(True); (torch.ones(300, 300) @ torch.ones(300, 300)).sum()
sifr.train('ds.json', output='$name')" || fail "import $order"
    cmp by_program/model.safetensors $name/model.safetensors || fail "import $order: other bits"
done
"$venv/bin/python" "$SOURCE/tests/soak/python_arrays.py" || fail "arrays"
"$venv/bin/mypy" --strict --exclude integrations --cache-dir mypy "$SOURCE/python/sifr" ||
    fail "types"
echo "3 runs with $("$venv/bin/python" --version): $packages"
