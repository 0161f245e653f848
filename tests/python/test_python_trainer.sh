# label: full
# timeout: 60
# The arguments of transformers' Trainer: what is refused, by name, and what becomes of the others,
# without transformers. tests/soak/test_soak_trainer.sh trains with it.
. "$SOURCE/tests/support/python.sh"
. "$SOURCE/tests/support/expect.sh"
PYTHONPATH=$PYTHONPATH:$SOURCE/tests/python python3 "$SOURCE/tests/python/python_trainer.py" ||
    fail "arguments of a Trainer"
