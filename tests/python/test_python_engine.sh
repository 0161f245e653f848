# label: full
# timeout: 120
# An engine in a loop of Python's: the bits of `sifr train` with the same batches; weights
# in the caller's buffers; wrong buffers, keys and uses are exceptions. Without numpy, which the soak
# has.
. "$SOURCE/tests/support/python.sh"
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/small_llama.sh"
. "$SOURCE/tests/support/same_windows.sh"
llama_model llama 32 2 false
cat >ds.json <<'J'
{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "scheduler": {"type": "WarmupCosineLR",
  "params": {"warmup_num_steps": 2, "total_num_steps": "auto"}},
 "sifr": {"model": "llama", "seq_length": 32, "threads": 1}}
J
same_windows store
expect 0 "$SIFR" train --config ds.json --data store --output by_program --max-steps 5
python3 "$SOURCE/tests/python/python_engine.py" || fail "from Python"
