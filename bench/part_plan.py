"""What `sifr plan` takes for a model of 70 billion parameters, of which there is a config.json."""
import json
import os
import subprocess
import tempfile
import time

from harness import clean_environment, median, spread
from report import Row, number
from report import spread as spread_text

MODEL = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128256,
         "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64,
         "num_key_value_heads": 8, "intermediate_size": 28672, "max_position_embeddings": 8192,
         "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": False}
NVME = {"device": "nvme", "nvme_path": "/tmp"}
# Title: ranks, sequences a step of all, micro batch, and "zero_optimization".
PLANS = {
    "64 ranks, stage 3": (64, 64, 1, {"stage": 3}),
    "one rank, state on disk, 8 micro batches":
        (1, 64, 8, {"stage": 1, "offload_optimizer": NVME}),
    "one rank, all on disk, 8 micro batches":
        (1, 64, 8, {"stage": 3, "offload_optimizer": NVME, "offload_param": NVME}),
    "64 ranks, stage 3, 16 micro batches": (64, 1024, 1, {"stage": 3}),
    "64 ranks, all on disk, 16 micro batches":
        (64, 1024, 1, {"stage": 3, "offload_optimizer": NVME, "offload_param": NVME}),
}


def take(context, folder, plan):
    ranks, batch, micro, zero = plan
    config = os.path.join(folder, "ds.json")
    with open(config, "w", encoding="utf-8") as f:
        json.dump({"train_batch_size": batch, "train_micro_batch_size_per_gpu": micro,
                   "bf16": {"enabled": True}, "zero_optimization": zero,
                   "sifr": {"recompute": "unit", "seq_length": 4096}}, f)
    begun = time.monotonic()
    subprocess.run([context.inputs.program("sifr"), "plan", "--config", config, "--model", folder,
                    "--world-size", str(ranks), "--device-memory", "80GiB", "--nvme", "8TiB",
                    "--json"],
                   stdout=subprocess.DEVNULL, env=clean_environment(), timeout=120, check=True)
    return time.monotonic() - begun


def run(context, part):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(MODEL, f)
        for title, plan in PLANS.items():
            took = [take(context, folder, plan) for _ in range(5)]
            part.data[title] = took
            value = median(took)
            part.rows.append(Row(f"sifr plan, 70B, {title}",
                                 f"{number(value)} s" + spread_text(spread(took)), "bound", "1 s",
                                 value, "<1"))
