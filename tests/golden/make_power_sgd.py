#!/usr/bin/env python3
"""Writes results/power_sgd.json, after make_models.py: losses of 300 steps of llama3 on two ranks by
torch's DistributedDataParallel, with its PowerSGD hook and without, over gloo.

    pip install torch transformers        # versions: see the file
    python make_power_sgd.py

Rows are made by numbers(): half of all next tokens follow from the token before, the others are
drawn, so the loss cannot fall far, and 2 % of it is a fair measure.
"""
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
import transformers
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = "llama3"
RANKS, STEPS, ROWS, LENGTH, WORDS, RATE = 2, 300, 4, 32, 320, 3e-3
CASES = {"dense": None, "rank 1": {"matrix_approximation_rank": 1, "start_powerSGD_iter": 10},
         "rank 2": {"matrix_approximation_rank": 2, "start_powerSGD_iter": 10},
         "cold": {"matrix_approximation_rank": 2, "start_powerSGD_iter": 10, "warm_start": False}}


def numbers(step, rank):
    """Tokens of a rank's rows of a step, LENGTH + 1 of each."""
    state = (step * RANKS + rank) * 2654435761 % 2**31
    rows = []
    for _ in range(ROWS):
        row = [7]
        while len(row) <= LENGTH:
            state = (state * 1103515245 + 12345) % 2**31
            drawn = state >> 8
            follows = drawn % 2 == 0
            row.append((row[-1] * 5 + 3) % WORDS if follows else drawn // 2 % WORDS)
        rows.append(row)
    return torch.tensor(rows)


def train(rank, case, port, out):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        os.path.join(HERE, "models", MODEL), dtype=torch.float32)
    model.config.use_cache = False
    wrapped = DistributedDataParallel(model)
    if CASES[case]:
        state = powerSGD_hook.PowerSGDState(process_group=None, **CASES[case])
        wrapped.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    optimizer = torch.optim.AdamW(wrapped.parameters(), lr=RATE, weight_decay=0.0)
    losses = []
    for step in range(STEPS):
        rows = numbers(step, rank)
        logits = wrapped(input_ids=rows[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, WORDS), rows[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(round(mean.item() / RANKS, 5))
    if rank == 0:
        with open(out, "w", encoding="utf-8") as file:
            json.dump(losses, file)
    dist.destroy_process_group()


def main():
    found = {"model": MODEL, "torch": torch.__version__, "transformers": transformers.__version__,
             "ranks": RANKS, "steps": STEPS, "rows": ROWS, "length": LENGTH, "rate": RATE,
             "start": 10, "losses": {}}
    for n, case in enumerate(CASES):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "losses")
            processes.spawn(train, args=(case, 29611 + n, out), nprocs=RANKS)
            with open(out, encoding="utf-8") as file:
                found["losses"][case] = json.load(file)
        print(case, found["losses"][case][::50], found["losses"][case][-1])
    with open(os.path.join(HERE, "results", "power_sgd.json"), "w", encoding="utf-8") as file:
        json.dump(found, file)
        file.write("\n")


if __name__ == "__main__":
    main()
