# label: full
# timeout: 120
# An engine of Python's with a loss of the caller's: the built-in one within rounding; exceptions;
# arrays that are kept; its plan. Numbers beside labels. Without numpy, which the soak has.
. "$SOURCE/tests/support/python.sh"
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/small_llama.sh"
llama_model llama 32 2 false
cat >ds.json <<'J'
{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "sifr": {"model": "llama", "seq_length": 32, "threads": 1}}
J
python3 "$SOURCE/tests/python/python_own_loss.py" || fail "from Python"
