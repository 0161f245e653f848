#!/usr/bin/env python3
"""Training steps of torch's pipeline over gloo, a stage and a core a rank: PipelineStage and
Schedule1F1B over the blocks of transformers' model, cut in equal runs; bf16 by autocast over fp32
weights, fused AdamW, the norm of all stages."""
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import shared


class Stage(torch.nn.Module):
    """A Llama with the blocks of one stage. Only the first has the embedding, only the last the norm
    and the head; between them go the results of a block."""

    def __init__(self, model, stage, stages, a):
        super().__init__()
        body, count = model.model, len(model.model.layers)
        self.body, self.first, self.last = body, stage == 0, stage == stages - 1
        self.bf16 = a.precision == "bf16"
        body.layers = body.layers[stage * count // stages:(stage + 1) * count // stages]
        body.config.num_hidden_layers = len(body.layers)
        self.head = model.lm_head if self.last else None
        if not self.first:
            body.embed_tokens = None
        if not self.last:
            body.norm = torch.nn.Identity()
        if a.compile:
            for block in body.layers:
                block.compile()

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            given = {"input_ids": x} if self.first else {"inputs_embeds": x}
            x = self.body(use_cache=False, **given).last_hidden_state
            return self.head(x) if self.last else x.float()


def main():
    parser = shared.arguments(__doc__)
    parser.add_argument("--micro-batches", type=int, default=8)
    parser.add_argument("--compile", action="store_true")
    a = parser.parse_args()
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    shared.settle(rank)
    model = Stage(shared.load(a.model), rank, ranks, a)
    a.sequences *= a.micro_batches
    labels = a.sequences * (a.length - 1)

    def loss_of(logits, ids):
        return torch.nn.functional.cross_entropy(
            logits[:, :-1].float().flatten(0, 1), ids[:, 1:].flatten(), reduction="sum") / labels

    pipeline = Schedule1F1B(PipelineStage(model, rank, ranks, torch.device("cpu")),
                            a.micro_batches, loss_fn=loss_of, scale_grads=False)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True, **shared.OPTIMIZER)

    def one_step(step):
        ids, losses = shared.batch(a, step), []
        if rank == 0:
            pipeline.step(ids)
        else:
            pipeline.step(target=ids, losses=losses)
        own = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
        sums = torch.stack([own.float() ** 2, sum(losses, torch.zeros(())).detach().float()])
        dist.all_reduce(sums)
        torch.nn.utils.clip_grads_with_norm_(model.parameters(), 1.0, sums[0].sqrt())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return sums[1]

    def agree(value):
        first = torch.tensor([value])
        dist.broadcast(first, 0)
        return float(first)

    shared.timed_steps(a, one_step, {"schedule": "Schedule1F1B", "compiled": a.compile}, agree,
                       rank == 0)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
