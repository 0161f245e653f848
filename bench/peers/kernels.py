#!/usr/bin/env python3
"""Single kernels of the peers:  kernels.py adam torch|deepspeed ELEMENTS RUNS
                                 kernels.py attention LENGTH bf16|fp32 RUNS
                                 kernels.py delta LENGTH bf16|fp32 RUNS [compile] [alone]

alone: one thread, and its own time, so that neighbours on the machine count less."""
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


def delta(length, precision, runs, compiled, alone):
    """transformers' gated delta rule in chunks, of one sequence with 16 heads of 128 x 128 as in
    Qwen3.5 0.8B, with the decay and beta of its layer."""
    from transformers.models.qwen3_5 import modeling_qwen3_5
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    leaves = [torch.rand(1, length, 16, *width).mul(2).sub(1).to(kind).requires_grad_()
              for width in ((128,), (128,), (128,), (), ())]
    rate, bias = (torch.rand(16).sub(0.5).to(kind).requires_grad_() for _ in range(2))
    dy = torch.rand(1, length, 16, 128).mul(2).sub(1).to(kind)

    def layer(q, k, v, inner, share, rate, bias):
        g = -rate.float().exp() * torch.nn.functional.softplus(inner.float() + bias)
        return modeling_qwen3_5.torch_chunk_gated_delta_rule(
            q, k, v, g, share.sigmoid(), use_qk_l2norm_in_kernel=True)[0]

    call = torch.compile(layer) if compiled else layer
    now = time.process_time if alone else time.perf_counter
    if alone:
        torch.set_num_threads(1)
    forward, backward = [], []
    for _ in range(runs + 1):
        start = now()
        y = call(*leaves, rate, bias)
        middle = now()
        y.backward(dy)
        backward.append(now() - middle)
        forward.append(middle - start)
        for leaf in leaves:
            leaf.grad = None
    return {"forward": forward[1:], "backward": backward[1:], "compiled": compiled}


def main():
    if sys.argv[1] == "adam":
        result = adam(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    elif sys.argv[1] == "delta":
        result = delta(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), "compile" in sys.argv,
                       "alone" in sys.argv)
    else:
        result = attention(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    shared.show({**result, **shared.settings()})


if __name__ == "__main__":
    main()
