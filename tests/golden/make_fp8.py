#!/usr/bin/env python3
"""Writes fp8/: tiny random folders whose matrices are in 8 bits, and what transformers makes of
them when it loads them with dequantize=True.

    pip install torch transformers        # versions: see fp8/expected.json
    python make_fp8.py

fp8/NAME/             config.json and model.safetensors, as published folders have them: blocks has
                      a scale a block of 16 x 16, tensor one a tensor, beside scales of activations
fp8/expected.json     the versions; by folder how many tensors are the same by the formula (FP32,
                      rounded to BF16 once) and in transformers, and the formula's hashes
"""
import hashlib
import json
import os
import shutil

import safetensors.torch
import torch
import transformers

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fp8")
BLOCK = 16
CONFIG = dict(vocab_size=40, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
              num_attention_heads=4, num_key_value_heads=2, head_dim=16, bos_token_id=1,
              eos_token_id=2, tie_word_embeddings=False, max_position_embeddings=64)
LARGEST = 448.0


def code(weight, block):
    rows, columns = weight.shape
    if block is None:
        scale = weight.abs().amax() / LARGEST
        return (weight / scale).to(torch.float8_e4m3fn), scale.reshape(())
    parts = weight.reshape(rows // block, block, columns // block, block)
    scale = parts.abs().amax(dim=(1, 3)) / LARGEST
    coded = (parts / scale[:, None, :, None]).reshape(rows, columns).to(torch.float8_e4m3fn)
    return coded, scale


def write(name, block):
    torch.manual_seed(7)
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    config = transformers.Qwen3Config(**CONFIG, architectures=["Qwen3ForCausalLM"],
                                      dtype="bfloat16")
    model = transformers.Qwen3ForCausalLM(config).to(torch.bfloat16)
    tensors = {}
    for key, value in model.state_dict().items():
        value = torch.randn_like(value.float()) * 0.2 + (1 if "norm" in key else 0)
        if value.dim() == 2 and "proj" in key:
            coded, scale = code(value, block)
            tensors[key], tensors[key + "_scale_inv"] = coded, scale.float()
            if block is None:
                tensors[key[: -len("weight")] + "activation_scale"] = torch.tensor(0.25)
        else:
            tensors[key] = value.to(torch.bfloat16)
    safetensors.torch.save_file(tensors, os.path.join(folder, "model.safetensors"),
                                metadata={"format": "pt"})
    written = json.loads(config.to_json_string())
    written["quantization_config"] = dict(
        activation_scheme="static" if block is None else "dynamic", fmt="e4m3",
        modules_to_not_convert=["lm_head"], quant_method="fp8",
        weight_block_size=None if block is None else [block, block])
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(written, file, indent=2)
        file.write("\n")
    return folder, tensors


def by_formula(tensors, block):
    """In FP32, rounded to BF16 once."""
    out = {}
    for key, value in tensors.items():
        if key.endswith(("_scale_inv", "activation_scale")):
            continue
        scale = tensors.get(key + "_scale_inv")
        if scale is not None:
            if block:
                scale = scale.repeat_interleave(block, 0).repeat_interleave(block, 1)
            value = (value.float() * scale).to(torch.bfloat16)
        out[key] = value
    return out


def hash_of(value):
    return hashlib.sha256(value.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()[:16]


def judge(folder, tensors, block):
    mine = by_formula(tensors, block)
    quantization = transformers.FineGrainedFP8Config(
        dequantize=True, weight_block_size=None if block is None else (block, block),
        modules_to_not_convert=["lm_head"],
        activation_scheme="static" if block is None else "dynamic")
    model = transformers.Qwen3ForCausalLM.from_pretrained(
        folder, quantization_config=quantization, dtype=torch.bfloat16, attn_implementation="eager")
    same = {key: bool(torch.equal(value, mine[key])) for key, value in model.state_dict().items()}
    hashes = {key: hash_of(value) for key, value in sorted(mine.items())}
    return dict(equal_in_transformers=sum(same.values()), of=len(same), tensors=hashes)


def main():
    expected = dict(torch=torch.__version__, transformers=transformers.__version__)
    for name, block in (("blocks", BLOCK), ("tensor", None)):
        folder, tensors = write(name, block)
        expected[name] = judge(folder, tensors, block)
    with open(os.path.join(HERE, "expected.json"), "w") as file:
        json.dump(expected, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
