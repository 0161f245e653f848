#!/usr/bin/env python3
"""Writes results/tensors-llama3.json: the twenty steps of make_steps.py's llama3 on two tensor ranks
by torch.distributed.tensor (DTensor, parallelize_module), a process each, over gloo. README.md says
what the file holds.

    pip install torch transformers        # versions: see models.json
    python make_tensors.py

Needs the results of make_steps.py, whose ids and rates it takes. Run in float64, where it is the
truth of these steps, and in float32, where its losses and norms are stored: what torch's own tensor
parallelism comes to.
"""
import hashlib
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from safetensors.torch import load_file
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import make_models as m

NAME, RANKS = "llama3", 2
OUTPUTS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")
INPUTS = ("self_attn.o_proj", "mlp.down_proj")


def whole(gradient):
    return gradient.full_tensor() if isinstance(gradient, DTensor) else gradient


def divide(model):
    """What sifr cuts, and no more: the table, the head and the norms stay whole."""
    mesh = init_device_mesh("cpu", (RANKS,))
    plan = {n: ColwiseParallel() for n in OUTPUTS} | {n: RowwiseParallel() for n in INPUTS}
    for layer in model.model.layers:
        parallelize_module(layer, mesh, plan)


def train(model, want, file):
    """Losses and norms of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(m.BETA1, m.BETA2),
                                  eps=m.EPSILON, weight_decay=m.WEIGHT_DECAY, foreach=False)
    losses, norms = [], []
    for step in range(want["steps"]):
        tokens, labels = (file[n][step].long() for n in ("step_tokens", "step_labels"))
        optimizer.zero_grad()
        count, total = int((labels >= 0).sum()), 0.0
        for i in range(want["micro_batches"]):
            logits = model(input_ids=tokens[i: i + 1], use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits[0], labels[i], ignore_index=-100,
                                                     reduction="sum") / count
            loss.backward()
            total += loss.item()
        norm = sum(whole(p.grad).double().square().sum() for p in model.parameters()) ** 0.5
        clip = max(1.0, (norm.item() + 1e-6) / m.CLIPPING)
        for p in model.parameters():
            p.grad /= clip
        optimizer.param_groups[0]["lr"] = want["step_lr"][step]
        optimizer.step()
        losses.append(total), norms.append(norm.item())
    return losses, norms


def run_rank(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank,
                            world_size=RANKS)
    case = next(c for c in m.CASES if c["name"] == NAME)
    path = os.path.join(m.RESULTS, NAME + "-steps")
    want, file = json.load(open(path + ".json")), load_file(path + ".safetensors")
    file = {n: file[n].view(want["steps"], want["micro_batches"], want["length"])
            for n in ("step_tokens", "step_labels")}
    out = {}
    for dtype in (torch.float64, torch.float32):
        m.use_float64(dtype == torch.float64)
        model = m.build(case, dtype)
        divide(model)
        out[dtype] = train(model, want, file)
    off = {d: [max(abs(a / b - 1) for a, b in zip(got, want[key]))
               for got, key in zip(out[d], ("step_loss", "step_gradient_norm"))] for d in out}
    assert max(off[torch.float64]) < 1e-9, off
    assert off[torch.float32][0] < 1e-5 and off[torch.float32][1] < 1e-4, off
    if rank == 0:
        losses, norms = out[torch.float32]
        m.write_json(os.path.join(m.RESULTS, "tensors-" + NAME + ".json"), {
            "model": NAME, "script": "make_tensors.py",
            "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
            "torch": torch.__version__, "tensors": RANKS,
            "step_loss": losses, "step_gradient_norm": norms,
            "torch_fp32_error": {"step_loss": off[torch.float32][0],
                                 "step_norm": off[torch.float32][1]}})
        print(off)
    dist.destroy_process_group()


def main():
    m.transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as folder:
        processes.spawn(run_rank, (folder,), nprocs=RANKS)


if __name__ == "__main__":
    main()
