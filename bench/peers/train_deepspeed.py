#!/usr/bin/env python3
"""Training steps of DeepSpeed on its CPU accelerator, one rank a core, with its fused CPU Adam
where that can be built."""
import os
import sys

import torch

import shared


def offload(a):
    """Optimizer state and parameters where --offload says."""
    if not a.offload:
        return {}
    where = {"device": a.offload, **({"nvme_path": a.nvme_path} if a.offload == "nvme" else {})}
    return {"offload_optimizer": where, "offload_param": where}


def config(a, ranks):
    return {"train_micro_batch_size_per_gpu": a.sequences, "gradient_accumulation_steps": 1,
            # With AutoTP, DeepSpeed 0.19.8 checks this before it knows of tensor ranks: left out.
            **({"train_batch_size": a.sequences * ranks} if a.tensors == 1 else {}),
            "gradient_clipping": 1.0,
            "bf16": {"enabled": a.precision == "bf16"},
            "zero_optimization": {"stage": a.stage, "overlap_comm": True, **offload(a)},
            **({"tensor_parallel": {"autotp_size": a.tensors}} if a.tensors > 1 else {}),
            "zero_allow_untested_optimizer": True, "steps_per_print": 1000000}


def make_optimizer(model):
    """DeepSpeed's own for the CPU; torch's fused one where its C++ cannot be compiled here."""
    try:
        from deepspeed.ops.adam import DeepSpeedCPUAdam
        return DeepSpeedCPUAdam(model.parameters(), adamw_mode=True, **shared.OPTIMIZER), \
            "DeepSpeedCPUAdam"
    except Exception as e:      # whatever a compiler may say
        print(f"DeepSpeedCPUAdam: {e}", file=sys.stderr)
        return torch.optim.AdamW(model.parameters(), fused=True, **shared.OPTIMIZER), "torch, fused"


def main():
    parser = shared.arguments(__doc__)
    parser.add_argument("--stage", type=int, choices=(0, 1, 2, 3), default=3)
    parser.add_argument("--tensors", type=int, default=1, help="ranks that share a batch (AutoTP)")
    parser.add_argument("--offload", choices=("cpu", "nvme"))
    parser.add_argument("--nvme-path")
    parser.add_argument("--compile", action="store_true")
    a = parser.parse_args()
    rank = int(os.environ["RANK"])
    shared.settle(rank)
    import deepspeed
    import deepspeed.comm as dist
    deepspeed.init_distributed(dist_backend="gloo")
    ranks = dist.get_world_size()
    model = shared.load(a.model)
    optimizer, which = make_optimizer(model)
    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer,
                                           config=config(a, ranks))
    if a.compile:
        engine.compile()

    def one_step(step):
        ids = shared.batch(a, step, rank // a.tensors, ranks // a.tensors)
        loss = engine(input_ids=ids, labels=ids).loss
        engine.backward(loss)
        engine.step()
        mean = loss.detach().float().clone()
        dist.all_reduce(mean)
        return mean / ranks

    def agree(value):
        first = torch.tensor([value])
        dist.broadcast(first, 0)
        return float(first)

    shared.timed_steps(a, one_step, {"deepspeed": deepspeed.__version__, "stage": a.stage,
                                     "optimizer": which, "compiled": a.compile}, agree, rank == 0)
    dist.barrier()


if __name__ == "__main__":
    main()
