#!/usr/bin/env python3
"""Writes results/nf4.safetensors: values, and what bitsandbytes' CPU code makes of them in NF4, with
and without double quantisation of the scales. README.md says what the file holds.

    pip install torch bitsandbytes
    python make_nf4.py
"""
import os

import bitsandbytes
import torch
from bitsandbytes import functional
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = 64 * 264  # a group of 256 scales, and 8 of another
STRIDE = 5  # of the values that are stored opened again


def values():
    """Normal ones, in blocks of many sizes; values in the middle between two codes; one outlier."""
    g = torch.Generator().manual_seed(4)
    x = torch.randn(COUNT, generator=g)
    size = torch.exp(torch.randn(COUNT // 64, generator=g)) * 0.02
    x = x * size.repeat_interleave(64)
    code = functional.get_4bit_type("nf4", device="cpu")
    x[64:80] = code * 0.5
    x[80:95] = (code[1:] + code[:-1]) * 0.25
    x[5] = 3.0
    return x


def double(state):
    """Quantises the scales of a state, as quantize_4bit does it with compress_statistics. In float64,
    since only then the CPU takes the nearest codes, as the GPU always does: in float32 it looks them
    up in a coarse table, and one in 250 is another."""
    code = functional.create_dynamic_map()
    state.offset = state.absmax.mean()
    codes, largest = torch.ops.bitsandbytes.quantize_blockwise.default(
        (state.absmax - state.offset).double(), code, 256)
    state.absmax = codes
    state.state2 = functional.QuantState(absmax=largest.float(), code=code, blocksize=256,
                                         dtype=torch.float32)
    state.nested = True


def main():
    torch.set_num_threads(1)
    x = values()
    out = {"values": x}
    plain, state = functional.quantize_4bit(x, blocksize=64, quant_type="nf4")
    out["codes"] = plain.reshape(-1)
    out["scales"] = state.absmax
    double(state)
    out["scale_codes"] = state.absmax
    out["scale_largest"] = state.state2.absmax
    out["scale_mean"] = state.offset.reshape(1)
    out["scale_map"] = state.state2.code
    out["map"] = state.code
    opened = functional.dequantize_4bit(plain, state).reshape(-1)
    out["opened"] = opened[::STRIDE].clone()
    path = os.path.join(HERE, "results", "nf4.safetensors")
    save_file({k: v.contiguous() for k, v in out.items()}, path,
              metadata={"bitsandbytes": bitsandbytes.__version__, "torch": torch.__version__})
    print({k: (v.dtype, tuple(v.shape)) for k, v in out.items()})


if __name__ == "__main__":
    main()
