#!/usr/bin/env python3
"""Single kernels of the peers:  kernels.py adam torch|deepspeed ELEMENTS RUNS
                                 kernels.py attention LENGTH bf16|fp32 RUNS"""
import resource
import sys
import time

import torch

import shared


def seconds_of(call, runs):
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times[1:]


def adam(which, elements, runs):
    """One step over a single parameter, all of it in fp32: 28 bytes an element."""
    parameter = torch.nn.Parameter(torch.rand(elements))
    parameter.grad = torch.rand(elements)
    if which == "deepspeed":
        from deepspeed.ops.adam import DeepSpeedCPUAdam
        optimizer = DeepSpeedCPUAdam([parameter], adamw_mode=True, **shared.OPTIMIZER)
    else:
        optimizer = torch.optim.AdamW([parameter], fused=True, **shared.OPTIMIZER)
    return {"fp32": seconds_of(optimizer.step, runs), "bytes_fp32": 28 * elements}


def attention(length, precision, runs):
    """Causal, 12 heads of 64, one sequence. `bytes`: what the process took beyond its inputs."""
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    q, k, v = (torch.rand(1, 12, length, 64).sub(0.5).to(kind).requires_grad_() for _ in range(3))
    dy = torch.rand(1, 12, length, 64).sub(0.5).to(kind)
    forward, backward = [], []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(runs + 1):
        start = time.perf_counter()
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        middle = time.perf_counter()
        y.backward(dy)
        backward.append(time.perf_counter() - middle)
        forward.append(middle - start)
        q.grad = k.grad = v.grad = None
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    return {"forward": forward[1:], "backward": backward[1:],
            "bytes": grown + 4 * q.numel() * q.element_size()}


def main():
    if sys.argv[1] == "adam":
        result = adam(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        result = attention(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    shared.show({**result, **shared.settings()})


if __name__ == "__main__":
    main()
