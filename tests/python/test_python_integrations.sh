# label: full
# timeout: 120
# What integrations share, without torch or Lightning: micro batches of loaders, DeepSpeed's three
# calls with the bits of `sifr train`, a checkpoint that is a folder; Lightning's strategy on stubs.
# tests/soak/ has the real ones.
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
 "sifr": {"seq_length": 32, "threads": 1}}
J
same_windows store
expect 0 "$SIFR" train --config ds.json --model llama --data store --output by_program --max-steps 5
python3 "$SOURCE/tests/python/python_integrations.py" || fail "from Python"
sed 's/"gradient_accumulation_steps": 2, //' ds.json >ds_lightning.json
python3 "$SOURCE/tests/python/python_lightning.py" || fail "Lightning's strategy on stubs"
