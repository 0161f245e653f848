#!/usr/bin/env python3
"""Training steps of PyTorch's tensor parallelism (DTensor) over gloo, one rank a core: all ranks
share a batch. The projections of attention and MLP of a Llama are divided, by output rows and then
by input columns, and its head by words, as torch's guide has it; bf16 by autocast."""
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)

import shared

PLAN = {"self_attn.q_proj": ColwiseParallel(), "self_attn.k_proj": ColwiseParallel(),
        "self_attn.v_proj": ColwiseParallel(), "self_attn.o_proj": RowwiseParallel(),
        "mlp.gate_proj": ColwiseParallel(), "mlp.up_proj": ColwiseParallel(),
        "mlp.down_proj": RowwiseParallel()}


def main():
    parser = shared.arguments(__doc__)
    parser.add_argument("--compile", action="store_true")
    a = parser.parse_args()
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    shared.settle(rank)
    model = shared.load(a.model)
    mesh = init_device_mesh("cpu", (ranks,))
    for block in model.model.layers:
        parallelize_module(block, mesh, PLAN)
        if a.compile:
            block.compile()
    parallelize_module(model, mesh, {"lm_head": ColwiseParallel(output_layouts=Replicate())})
    # Plain and divided parameters cannot be in one fused update.
    plain = [p for p in model.parameters() if not hasattr(p, "placements")]
    divided = [p for p in model.parameters() if hasattr(p, "placements")]
    optimizers = [torch.optim.AdamW(p, fused=True, **shared.OPTIMIZER) for p in (plain, divided)]

    def one_step(step):
        ids = shared.batch(a, step)
        with torch.autocast("cpu", torch.bfloat16, enabled=a.precision == "bf16"):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        norms = [torch.nn.utils.get_total_norm([p.grad for p in group])
                 for group in (plain, divided)]
        square = norms[0] ** 2 + norms[1].full_tensor() ** 2
        scale = min(1.0, 1.0 / (float(square) ** 0.5 + 1e-6))
        for p in model.parameters():
            p.grad.mul_(scale)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss.detach().float()

    def agree(value):
        first = torch.tensor([value])
        dist.broadcast(first, 0)
        return float(first)

    shared.timed_steps(a, one_step, {"tensors": ranks, "compiled": a.compile}, agree, rank == 0)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
