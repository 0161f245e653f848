# label: full
# timeout: 120
# The Python package trains as `sifr train` does, to the bit; what callbacks get, and what they stop;
# wrong configs and callbacks are exceptions with the library's message.
. "$SOURCE/tests/support/python.sh"
. "$SOURCE/tests/support/train_runs.sh"

expect 0 train --model llama --output by_program --max-steps 6
python3 "$SOURCE/tests/python/python_train.py" || fail "from Python"
cmp by_program/model.safetensors by_python/model.safetensors || fail "other bits"
cmp by_program/model.safetensors resumed/model.safetensors || fail "other bits after a stop"
cmp by_program/model.safetensors floats/model.safetensors || fail "other bits in another float mode"
