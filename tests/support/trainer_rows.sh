# Sourced by soak tests of transformers' Trainer: $python of an environment with PyPI's $packages, a
# model, rows of text, and ds.json, by which `sifr train` trains on them.
. "$SOURCE/tests/support/python.sh"
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/small_llama.sh"
venv=$BUILD/python-soak # test_soak_python's, for its torch
packages="numpy==2.4.6 torch==2.15.0 safetensors==0.8.0 transformers==5.24.0 accelerate==1.15.0
    peft==0.21.2 trl==1.16.0 datasets==5.2.0 mypy==2.4.1"
if ! "$venv/bin/python" -c 'import transformers, accelerate, peft, trl, datasets, mypy' 2>/dev/null; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install $packages; } >pip.log 2>&1 ||
        { tail -n 3 pip.log; echo "no $packages from PyPI: skipped"; exit 77; }
fi
export PYTHONPATH=$PYTHONPATH:$SOURCE/tests/soak:$SOURCE/tests/python HF_HUB_OFFLINE=1
python=$venv/bin/python
llama_model llama 32 2 false
python3 - <<'P'
import json

lines = [line[:50] for line in open("text").read().split("\n") if len(line) > 20]
for name, some in (("rows.jsonl", lines[:72]), ("held.jsonl", lines[72:93])):
    with open(name, "w") as file:
        for line in some:
            file.write(json.dumps({"text": line}) + "\n")
P
cat >ds.json <<'J'
{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.01}},
 "sifr": {"model": "llama", "data": ["rows.jsonl"], "data_type": "text", "seq_length": 32,
          "threads": 1, "lr_scheduler_type": "linear", "warmup_steps": 2,
          "no_decay": "transformers", "max_steps": 12}}
J
