#!/usr/bin/env python3
"""Training steps of FSDP2 over gloo, one rank a core: units are the transformer blocks and the
rest, bf16 by its own policy, gradients reduced in fp32 as sifr's are. --stage 2 keeps parameters
gathered between forward and backward, --stage 3 does not. --shard-size S cuts over S neighbours, with
copies in the other groups of S ranks (hybrid sharding)."""
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import shared


def blocks(model):
    return model.transformer.h if hasattr(model, "transformer") else model.model.layers


def main():
    parser = shared.arguments(__doc__)
    parser.add_argument("--stage", type=int, choices=(2, 3), default=3)
    parser.add_argument("--shard-size", type=int)
    parser.add_argument("--compile", action="store_true")
    a = parser.parse_args()
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    shared.settle(rank)
    model = shared.load(a.model)
    mesh = init_device_mesh("cpu", (ranks // a.shard_size, a.shard_size),
                            mesh_dim_names=("replicas", "shards")) \
        if a.shard_size else init_device_mesh("cpu", (ranks,))
    options = {"mesh": mesh, "reshard_after_forward": a.stage == 3}
    if a.precision == "bf16":
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16,
                                                    reduce_dtype=torch.float32)
    for block in blocks(model):
        if a.compile:
            block.compile()
        fully_shard(block, **options)
    fully_shard(model, **options)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True, **shared.OPTIMIZER)

    def one_step(step):
        ids = shared.batch(a, step, rank, ranks)
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        mean = loss.detach().float().clone()
        dist.all_reduce(mean)
        return mean / ranks

    def agree(value):
        first = torch.tensor([value])
        dist.broadcast(first, 0)
        return float(first)

    shared.timed_steps(a, one_step, {"stage": a.stage, "compiled": a.compile}, agree, rank == 0)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
