#!/usr/bin/env python3
"""Writes results/qlora.json and .safetensors: five steps of training adapters of make_lora.py over a
base whose products are in NF4. README.md says what the files hold.

    pip install torch transformers peft bitsandbytes accelerate
    python make_qlora.py

The truth is computed in float64, over what bitsandbytes' CPU code makes of its own codes: that is
what its products multiply by. The script asserts that transformers, PEFT and bitsandbytes together
(BitsAndBytesConfig, in float32, on the CPU) come to the same losses.
"""
import math
import os

import bitsandbytes
import peft
import torch
import transformers
from bitsandbytes import functional

import make_lora as l
import make_models as m
import make_nf4 as nf4

CASES = [("double", "llama3", True), ("plain", "all-linear", False)]


def through_codes(model, double, skip=()):
    """The values of codes in place of the weights of all products but the head's. As one row: of
    rows that are no multiple of 64 long (down_proj) the library takes wrong scales on some CPUs."""
    for name, module in model.named_modules():
        if not isinstance(module, torch.nn.Linear) or name.endswith(("lm_head", *skip)):
            continue
        weight = module.weight.data
        codes, state = functional.quantize_4bit(weight.float().reshape(-1), blocksize=64,
                                                quant_type="nf4")
        if double:
            nf4.double(state)
        values = functional.dequantize_4bit(codes, state)
        module.weight.data = values.reshape(weight.shape).to(weight.dtype)
    return model


def wrap(case, config, dtype, double, skip=()):
    build = m.build
    m.build = lambda case, dtype: through_codes(build(case, dtype), double, skip)
    try:
        return l.wrap(case, config, dtype)
    finally:
        m.build = build


def whole_stack(model_name, adapter, double, data):
    """What a user runs: losses of the libraries together."""
    quantization = transformers.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=double,
        bnb_4bit_compute_dtype=torch.float32, llm_int8_skip_modules=["lm_head", "down_proj"])
    base = transformers.AutoModelForCausalLM.from_pretrained(
        os.path.join(m.MODELS, model_name), quantization_config=quantization, dtype=torch.float32,
        device_map="cpu")
    model = peft.PeftModel.from_pretrained(base, os.path.join(l.FOLDERS, adapter),
                                           is_trainable=True, autocast_adapter_dtype=False)
    linear = [x for x in model.modules() if isinstance(x, bitsandbytes.nn.Linear4bit)]
    assert linear, "no weight is in 4 bits"
    return l.train(model.train(), data)[0]  # eval() would take products in bfloat16


def result_of(name, adapter, double, tensors):
    _, model_name, config = next(c for c in l.CASES if c[0] == adapter)
    case = next(c for c in m.CASES if c["name"] == model_name)
    data, rows = [], []
    for s in range(l.STEPS):
        tokens, labels = m.batch(case, f"lora{s}", l.MICRO_BATCHES)
        rows.append((tokens, labels))
        data.append([(tokens[i: i + 1], labels[i: i + 1]) for i in range(l.MICRO_BATCHES)])
    m.use_float64(True)
    model = wrap(case, config, torch.float64, double)
    start = l.weights(model)
    losses, norms = l.train(model, data)
    update = l.updates(model, start)
    size = math.sqrt(sum(float((u ** 2).sum()) for u in update.values()))
    m.use_float64(False)
    single = wrap(case, config, torch.float32, double)
    losses32, norms32 = l.train(single, data)
    missed = math.sqrt(sum(float(((u - update[k]) ** 2).sum())
                           for k, u in l.updates(single, start).items()))
    own = {"step_loss": max(abs(a / b - 1) for a, b in zip(losses32, losses)),
           "step_norm": max(abs(a / b - 1) for a, b in zip(norms32, norms)),
           "update": missed / size}
    most = l.train(wrap(case, config, torch.float32, double, ("down_proj",)), data)[0]
    stack = max(abs(a / b - 1)
                for a, b in zip(whole_stack(model_name, adapter, double, data), most))
    print(f"{name}: loss {losses[0]:.4f} to {losses[-1]:.4f}, fp32 {own}, all libraries {stack}")
    assert stack < 1e-5
    tensors[f"{name}/tokens"] = torch.stack([t for t, _ in rows]).int()
    tensors[f"{name}/labels"] = torch.stack([x for _, x in rows]).int()
    for k, u in update.items():
        tensors[f"{name}/{k}"] = u.float()
    return {"name": name, "adapter": adapter, "model": model_name, "double": double,
            "step_loss": losses, "step_gradient_norm": norms, "all_libraries_error": stack,
            "trained": sum(u.numel() for u in update.values()), "torch_fp32_error": own}


def main():
    l.write("qlora", __file__, CASES, result_of, bitsandbytes=bitsandbytes.__version__)


if __name__ == "__main__":
    main()
