#!/usr/bin/env python3
"""Training steps of a classifier by transformers and DeepSpeed on its CPU accelerator, one rank a
core: ZeRO 3 with optimizer state on the host, as the DeepSpeed config that people publish for
DeBERTa has it. RANK and WORLD_SIZE are in the environment."""
import argparse
import json
import os
import re
import sys
import time

import torch

import shared


def resident():
    """The most anonymous and shared memory of this process so far, in bytes."""
    with open("/proc/self/status") as f:
        return int(re.search(r"VmHWM:\s*(\d+)", f.read()).group(1)) * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--config", required=True, help="DeepSpeed's JSON, but for the precision")
    parser.add_argument("--precision", choices=("fp32", "bf16", "fp16"), default="fp32")
    parser.add_argument("--labels", type=int, default=3)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--steps", type=int, default=3)
    a = parser.parse_args()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    shared.settle(rank)
    import deepspeed
    import deepspeed.comm as dist
    from transformers import AutoModelForSequenceClassification
    deepspeed.init_distributed(dist_backend="gloo")
    model = AutoModelForSequenceClassification.from_pretrained(
        a.model, num_labels=a.labels, dtype=torch.float32).train()
    with open(a.config) as f:
        config = json.load(f)
    config.update({"fp16": {"enabled": a.precision == "fp16"},
                   "bf16": {"enabled": a.precision == "bf16"}})
    words = model.config.vocab_size
    engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(),
                                           config=config)
    micro, count = engine.train_micro_batch_size_per_gpu(), engine.gradient_accumulation_steps()
    numbers = torch.Generator().manual_seed(1 + rank)
    seconds = []
    for _ in range(a.steps + 1):
        start = time.perf_counter()
        for _ in range(count):
            ids = torch.randint(5, words, (micro, a.length), generator=numbers)
            labels = torch.randint(a.labels, (micro,), generator=numbers)
            loss = engine(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
            engine.backward(loss)
            engine.step()
        dist.barrier()
        seconds.append(time.perf_counter() - start)
    most = torch.tensor([resident()], dtype=torch.int64)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    if rank == 0:
        print("\n" + json.dumps({"seconds": seconds[1:], "bytes": int(most), "ranks": ranks,
                                 "deepspeed": deepspeed.__version__, "torch": torch.__version__}),
              flush=True)


if __name__ == "__main__":
    sys.exit(main())
