#!/usr/bin/env python3
"""Writes lora/NAME and results/lora.json and .safetensors: adapter folders of PEFT for some of the
models of make_models.py, and five steps of training them by PEFT and torch. README.md says what the
files hold.

    pip install torch transformers peft
    python make_lora.py

The truth is computed in float64. "torch_fp32_error" is what the same libraries miss in float32.
"""
import hashlib
import json
import math
import os

import peft
import torch
from safetensors.torch import save_file

import make_models as m

FOLDERS = os.path.join(m.HERE, "lora")
STEPS, MICRO_BATCHES = 5, 4  # micro batches of one sequence
RATE = 5e-3

CASES = [
    ("gpt2", "gpt2", {"r": 4, "lora_alpha": 8, "target_modules": ["c_attn", "mlp.c_proj"]}),
    ("llama3", "llama3", {"r": 4, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"]}),
    ("patterns", "llama-bias",
     {"r": 3, "lora_alpha": 5, "target_modules": r".*\.(?:q_proj|down_proj)", "use_rslora": True,
      "rank_pattern": {r"layers\.1\.mlp\.down_proj": 6, "q_proj": 2},
      "alpha_pattern": {"down_proj": 12}, "bias": "lora_only", "modules_to_save": ["lm_head"]}),
    ("layers", "llama-linear",
     {"r": 2, "lora_alpha": 2, "target_modules": ["v_proj", "o_proj", "up_proj"],
      "layers_to_transform": [1], "layers_pattern": "layers"}),
    ("all-linear", "llama-bias",
     {"r": 2, "lora_alpha": 2, "target_modules": "all-linear", "bias": "all",
      "exclude_modules": ["gate_proj", "layers.0.self_attn.k_proj"]}),
]


def wrap(case, config, dtype):
    """PEFT's model in `dtype`, with random adapters rounded to float32."""
    model = peft.get_peft_model(m.build(case, dtype), peft.LoraConfig(task_type="CAUSAL_LM", **config),
                                autocast_adapter_dtype=False)
    g = m.generator(case["name"], "lora")
    for name, p in model.named_parameters():
        if "lora_" not in name:
            continue
        draw = torch.randn(p.shape, generator=g, dtype=torch.float64)
        p.data = (draw * (0.05 if "lora_B" in name else 1 / math.sqrt(p.shape[1]))).float().to(dtype)
    return model.eval()


def train(model, data):
    dtype = next(model.parameters()).dtype
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE, betas=(m.BETA1, m.BETA2), eps=m.EPSILON,
                                  weight_decay=m.WEIGHT_DECAY, foreach=False)
    losses, norms = [], []
    for micro_batches in data:
        valid = sum(int((labels >= 0).sum()) for _, labels in micro_batches)
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for tokens, labels in micro_batches:
            loss, _ = m.token_losses(model, tokens, labels, dtype)
            (loss.sum() / valid).backward()
            total += float(loss.sum()) / valid
        size = math.sqrt(sum(float((p.grad.double() ** 2).sum()) for p in trained))
        for p in trained:
            p.grad /= max(1.0, (size + 1e-6) / m.CLIPPING)
        optimizer.step()
        losses.append(total)
        norms.append(size)
    return losses, norms


def weights(model):
    """What is trained, as save_pretrained names it. (It leaves the biases of "lora_only" out.)"""
    return {k.replace(".default.", ".").replace(".modules_to_save.", "."): v.detach().double().clone()
            for k, v in model.named_parameters() if v.requires_grad}


def updates(model, start):
    return {k: v - start[k] for k, v in weights(model).items()}


def tidy(folder):
    """"all-linear" was written as a set, whose order is by chance."""
    path = os.path.join(folder, "adapter_config.json")
    with open(path) as f:
        config = json.load(f)
    if isinstance(config["target_modules"], list):
        config["target_modules"].sort()
    with open(path, "w") as f:
        json.dump(config, f, indent=2, sort_keys=True)
        f.write("\n")
    for name in os.listdir(folder):
        os.chmod(os.path.join(folder, name), 0o644)


def result_of(name, model_name, config, tensors):
    case = next(c for c in m.CASES if c["name"] == model_name)
    data, rows = [], []
    for s in range(STEPS):
        tokens, labels = m.batch(case, f"lora{s}", MICRO_BATCHES)
        rows.append((tokens, labels))
        data.append([(tokens[i: i + 1], labels[i: i + 1]) for i in range(MICRO_BATCHES)])
    m.use_float64(True)
    model = wrap(case, config, torch.float64)
    start = weights(model)
    folder = os.path.join(FOLDERS, name)
    stored = wrap(case, config, torch.float32)
    stored.peft_config["default"].base_model_name_or_path = f"../../models/{model_name}"
    stored.save_pretrained(folder, save_embedding_layers=False)
    os.remove(os.path.join(folder, "README.md"))
    tidy(folder)
    losses, norms = train(model, data)
    update = updates(model, start)
    size = math.sqrt(sum(float((u ** 2).sum()) for u in update.values()))

    m.use_float64(False)
    single = wrap(case, config, torch.float32)
    losses32, norms32 = train(single, data)
    missed = math.sqrt(sum(float(((u - update[k]) ** 2).sum())
                           for k, u in updates(single, start).items()))
    own = {"step_loss": max(abs(a / b - 1) for a, b in zip(losses32, losses)),
           "step_norm": max(abs(a / b - 1) for a, b in zip(norms32, norms)),
           "update": missed / size}
    tensors[f"{name}/tokens"] = torch.stack([t for t, _ in rows]).int()
    tensors[f"{name}/labels"] = torch.stack([l for _, l in rows]).int()
    for k, u in update.items():
        tensors[f"{name}/{k}"] = u.float()
    print(f"{name}: loss {losses[0]:.4f} to {losses[-1]:.4f}, norms {norms[0]:.3f} to "
          f"{norms[-1]:.3f}, fp32 {own}")
    return {"name": name, "model": model_name, "step_loss": losses, "step_gradient_norm": norms,
            "trained": sum(u.numel() for u in update.values()), "torch_fp32_error": own}


def write(name, script, cases, result, **packages):
    """Writes results/NAME.json and .safetensors. result(*case, tensors) gives a case's entry."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    m.transformers.logging.set_verbosity_error()
    tensors = {}
    results = [result(*case, tensors) for case in cases]
    path = os.path.join(m.RESULTS, name)
    save_file({k: v.contiguous() for k, v in tensors.items()}, path + ".safetensors")
    m.write_json(path + ".json", {
        "script": os.path.basename(script),
        "script_sha256": hashlib.sha256(open(script, "rb").read()).hexdigest(),
        "packages": {"torch": torch.__version__, "peft": peft.__version__,
                     "transformers": m.transformers.__version__, **packages},
        "length": m.LENGTH, "micro_batches": MICRO_BATCHES, "steps": STEPS, "lr": RATE,
        "betas": [m.BETA1, m.BETA2], "eps": m.EPSILON, "weight_decay": m.WEIGHT_DECAY,
        "gradient_clipping": m.CLIPPING, "cases": results})


def main():
    write("lora", __file__, CASES, result_of)


if __name__ == "__main__":
    main()
