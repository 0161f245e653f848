"""What the peers' scripts share: the model of a folder, the ids of a file, steps against the clock.

Every peer reads the weights that `sifr init` wrote and the ids that sifr trains on, and prints one
JSON object last: seconds and loss of each step, the first one included."""
import argparse
import array
import json
import os
import time

import torch

# AdamW as sifr's: no decay; clipping at 1.
LEARNING_RATE = 3e-4
OPTIMIZER = {"lr": LEARNING_RATE, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", required=True)
    parser.add_argument("--batches", required=True)
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--sequences", type=int, default=4)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60)
    return parser


def load(folder, dtype=torch.float32, **more):
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa",
                                                 **more)
    model.config.use_cache = False
    return model.train()


def batch(a, step, rank=0, ranks=1):
    """Sequences of one rank: rank r has the r-th of each step."""
    count = a.sequences * a.length
    ids = array.array("i")
    with open(a.batches, "rb") as f:
        f.seek(4 * count * (step * ranks + rank))
        ids.frombytes(f.read(4 * count))
    return torch.tensor(ids, dtype=torch.long).view(a.sequences, a.length)


def timed_steps(a, one_step, more, agree=lambda value: value, speaks=True):
    """one_step(step) gives the loss. No step begins after a.seconds; agree() makes that the first
    rank's decision. After each step the one that speaks prints what there is, with `more` to say:
    a process that is ended for being slow has said something. Returns the seconds, the first step's
    first."""
    seconds, losses, begun = [], [], None
    for step in range(a.steps + 1):
        start = time.perf_counter()
        losses.append(float(one_step(step)))
        seconds.append(time.perf_counter() - start)
        begun = begun or time.perf_counter()
        if (step or not a.steps) and speaks:
            show({"seconds": seconds, "losses": losses, "ended": time.monotonic(), **settings(),
                  **more})
        if step and agree(time.perf_counter() - begun) > a.seconds:
            break
    return seconds


def steps_of(a, model, trained):
    """one_step for timed_steps on one rank: fused AdamW on the parameters `trained`, bf16 by
    autocast, compiled with --compile."""
    optimizer = torch.optim.AdamW(trained, fused=True, **OPTIMIZER)
    forward = torch.compile(model) if a.compile else model

    def one_step(step):
        ids = batch(a, step)
        with torch.autocast("cpu", torch.bfloat16, enabled=a.precision == "bf16"):
            loss = forward(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return one_step


def is_emulated():
    """bf16 products without instructions for them."""
    with open("/proc/cpuinfo") as f:
        flags = f.read()
    return "avx512_bf16" not in flags and "amx_bf16" not in flags and "bf16" not in flags


def settings():
    return {"torch": torch.__version__, "threads": torch.get_num_threads(),
            "mkldnn": torch.backends.mkldnn.is_available(),
            "capability": torch.backends.cpu.get_cpu_capability(),
            "bf16_emulated": is_emulated()}


def show(result):
    print("\n" + json.dumps(result), flush=True)


def settle(rank):
    """A core of its own for this process."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[rank % len(allowed)]})
    torch.set_num_threads(1)
