# label: soak
# timeout: 1200, not under sanitizers
# Each family of docs/models.md beside transformers 5.24 of PyPI, at sizes that no golden result has:
# ten steps of AdamW on 1, 2 and 4 ranks give the same bits, transformers' losses within 1e-5, and a
# folder that transformers opens, with its logits within 1e-4. Encoders are trained as classifiers, on
# one rank. Folders in 8 bits are trained as transformers reads them.
# Skipped where pip cannot get the packages.
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/find_mpi.sh"
venv=$BUILD/python-soak # test_soak_trainer's
packages="numpy==2.4.6 torch==2.15.0 safetensors==0.8.0 transformers==5.24.0 peft==0.21.2"
if ! "$venv/bin/python" -c 'import transformers' 2>/dev/null; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install $packages; } >pip.log 2>&1 ||
        { tail -n 3 pip.log; echo "no $packages from PyPI: skipped"; exit 77; }
fi
export HF_HUB_OFFLINE=1
for script in training classifiers; do
    "$venv/bin/python" "$SOURCE/tests/golden/check_$script.py" "$SIFR" 1 >$script.log 2>&1 ||
        { cat $script.log; fail "check_$script.py"; }
    cat $script.log
done
# Every row of the table is in one of the two.
sed -n 's/^| `\([a-z0-9_-]*\)` |.*/\1/p' "$SOURCE/docs/models.md" |
    grep -vx model_type | while read -r family; do
    grep -qE "^$family( |:)" training.log classifiers.log || fail "$family is not tried"
done
echo "$(cat training.log classifiers.log | wc -l) models beside transformers"
