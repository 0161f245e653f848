#!/usr/bin/env python3
"""Writes pipeline/steps.json and pipeline/store.idx and .bin: five steps of models of make_models.py
in two stages by torch.distributed.pipelining (PipelineStage, Schedule1F1B), a process each, over
gloo. README.md says what the files hold.

    pip install torch transformers        # versions: see models.json
    python make_pipeline.py

The truth is computed in float64. "torch_fp32_error" is what the same pipeline misses in float32; and
the script asserts that steps without a pipeline are the same.
"""
import hashlib
import json
import math
import os
import struct
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import make_models as m

FOLDER = os.path.join(m.HERE, "pipeline")
NAMES = ("llama2", "gpt2")    # a head of its own, and one tied to the embedding of the other stage
STAGES, MICRO_BATCHES, STEPS, RATE = 2, 8, 5, 5e-3
WINDOWS = {"name": "pipeline", "masked": False}    # for both models the same


class Nothing(torch.nn.Module):
    """In place of GPT-2's table of positions, which only the first stage adds."""

    def forward(self, ids):
        return torch.zeros(())


class Stage(torch.nn.Module):
    """transformers' own model with the blocks of one of two stages; between the stages go the
    results of a block. Dropped modules are those of the other stage."""

    def __init__(self, model, stage):
        super().__init__()
        self.model, self.first = model, stage == 0
        gpt2 = hasattr(model, "transformer")
        body = model.transformer if gpt2 else model.model
        blocks = body.h if gpt2 else body.layers
        half = len(blocks) // STAGES
        kept = torch.nn.ModuleList(list(blocks)[stage * half:(stage + 1) * half])
        setattr(body, "h" if gpt2 else "layers", kept)
        model.config.num_hidden_layers = half
        if self.first:
            setattr(body, "ln_f" if gpt2 else "norm", torch.nn.Identity())
            del model.lm_head
        elif gpt2:
            model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
            body.wte, body.wpe = None, Nothing()
        else:
            body.embed_tokens = None
        self.body = body

    def forward(self, x):
        if self.first:
            return self.body(input_ids=x, use_cache=False).last_hidden_state
        return self.model(inputs_embeds=x, use_cache=False).logits


def windows():
    """Ids of a store whose windows are the micro batches of each step."""
    ids = m.windows(WINDOWS["name"], "ids", MICRO_BATCHES).flatten()
    return ids[:MICRO_BATCHES * m.LENGTH + 1]


def batch(ids):
    return ids[:-1].view(MICRO_BATCHES, -1), ids[1:].view(MICRO_BATCHES, -1)


def shared_table(model, case):
    """What both stages hold a copy of; None: nothing."""
    if not case["config"].tie_word_embeddings:
        return None
    return model.body.wte.weight if model.first else model.model.lm_head.weight


def stage_steps(rank, name, dtype, port, out):
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    m.use_float64(dtype == torch.float64)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=STAGES)
    case = next(c for c in m.CASES if c["name"] == name)
    model = Stage(m.build(case, dtype), rank)
    shared = shared_table(model, case)
    counted = [p for p in model.parameters() if rank == 0 or p is not shared]
    tokens, labels = batch(windows())
    pipeline = Schedule1F1B(
        PipelineStage(model, rank, STAGES, torch.device("cpu")), MICRO_BATCHES,
        loss_fn=lambda logits, wanted: torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), wanted.flatten(), reduction="sum") / labels.numel(),
        scale_grads=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(m.BETA1, m.BETA2),
                                  eps=m.EPSILON, weight_decay=m.WEIGHT_DECAY, foreach=False)
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        found = []
        if rank == 0:
            pipeline.step(tokens)
        else:
            pipeline.step(target=labels, losses=found)
        if shared is not None:    # the gradients of both uses
            dist.all_reduce(shared.grad)
        figures = torch.tensor([sum(float(p.grad.double().pow(2).sum()) for p in counted),
                                sum(float(l.detach()) for l in found)], dtype=torch.float64)
        dist.all_reduce(figures)
        norm = math.sqrt(float(figures[0]))
        for p in model.parameters():
            p.grad /= max(1.0, (norm + 1e-6) / m.CLIPPING)
        optimizer.step()
        losses.append(float(figures[1])), norms.append(norm)
    if rank == 0:
        torch.save((losses, norms), out)
    dist.barrier()
    dist.destroy_process_group()


def pipeline_steps(name, dtype):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "steps")
        store = dist.TCPStore("127.0.0.1", 0, is_master=True)    # for a port that is free
        port = store.port
        del store
        processes.spawn(stage_steps, (name, dtype, port, out), nprocs=STAGES)
        return torch.load(out)


def plain_steps(name):
    """The same steps in one process, in float64."""
    case = next(c for c in m.CASES if c["name"] == name)
    m.STEPS = STEPS
    m.use_float64(True)
    tokens, labels = batch(windows())
    schedule = {"type": "WarmupLR", "params": {"warmup_min_lr": RATE, "warmup_max_lr": RATE,
                                               "warmup_num_steps": 2}}
    data = [[(tokens, labels)]] * STEPS
    losses, norms, _ = m.train({**case, "schedule": schedule}, m.build(case, torch.float64), data)
    return losses, norms


def apart(mine, theirs):
    return {what: max(abs(a / b - 1) for a, b in zip(*pair))
            for what, pair in zip(("step_loss", "step_norm"), zip(mine, theirs))}


def case_of(name):
    truth = pipeline_steps(name, torch.float64)
    plain = apart(plain_steps(name), truth)
    assert max(plain.values()) < 1e-12, (name, plain)
    own = apart(pipeline_steps(name, torch.float32), truth)
    print(f"{name}: loss {truth[0][0]:.4f} to {truth[0][-1]:.4f}, norms {truth[1][0]:.3f} to "
          f"{truth[1][-1]:.3f}; without a pipeline {plain}, fp32 {own}")
    return {"model": name, "step_loss": truth[0], "step_gradient_norm": truth[1],
            "torch_fp32_error": own}


def write_store():
    """Megatron's form, one document of 16-bit ids."""
    ids = windows().tolist()
    with open(os.path.join(FOLDER, "store.bin"), "wb") as f:
        f.write(struct.pack(f"<{len(ids)}H", *ids))
    with open(os.path.join(FOLDER, "store.idx"), "wb") as f:
        f.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2))
        f.write(struct.pack("<iqqq", len(ids), 0, 0, 1))


def main():
    os.makedirs(FOLDER, exist_ok=True)
    m.transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    write_store()
    m.write_json(os.path.join(FOLDER, "steps.json"), {
        "script": "make_pipeline.py",
        "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
        "versions": {"torch": torch.__version__, "transformers": m.transformers.__version__},
        "schedule": "Schedule1F1B", "stages": STAGES, "sequences": 1, "length": m.LENGTH,
        "micro_batches": MICRO_BATCHES, "steps": STEPS,
        "optimizer": {"type": "AdamW", "lr": RATE, "betas": [m.BETA1, m.BETA2], "eps": m.EPSILON,
                      "weight_decay": m.WEIGHT_DECAY},
        "gradient_clipping": m.CLIPPING,
        "cases": [case_of(name) for name in NAMES],
    })


if __name__ == "__main__":
    main()
