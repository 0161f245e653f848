# label: full
# timeout: 120
# An engine in a loop of Python's: the bits of `sifr train` with the same batches; weights
# in the caller's buffers; wrong buffers, keys and uses are exceptions. Without numpy, which the soak
# has.
. "$SOURCE/tests/support/python.sh"
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/small_llama.sh"
llama_model llama 32 2 false
cat >ds.json <<'J'
{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "scheduler": {"type": "WarmupCosineLR",
  "params": {"warmup_num_steps": 2, "total_num_steps": "auto"}},
 "sifr": {"model": "llama", "seq_length": 32, "threads": 1}}
J
# All windows are the same, whatever their order.
python3 - <<'P'
import struct

ids = [(j % 32) * 7 % 50 for j in range(4097)]
open("store.bin", "wb").write(struct.pack("<4097H", *ids))
open("store.idx", "wb").write(
    b"MMIDIDX\0\0" + struct.pack("<QBQQiqqq", 1, 8, 1, 2, 4097, 0, 0, 1))
P
expect 0 "$SIFR" train --config ds.json --data store --output by_program --max-steps 5
python3 "$SOURCE/tests/python/python_engine.py" || fail "from Python"
