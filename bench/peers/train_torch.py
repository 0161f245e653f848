#!/usr/bin/env python3
"""Training steps of PyTorch on one rank: bf16 by autocast over fp32 weights, fused AdamW, with or
without torch.compile: of the whole model (--compile), or of each decoder layer by itself and of the
loss (--compile-layers), which is faster to compile. There `whole` has one graph for a layer, `apart`
leaves Qwen3.5's delta rule out of it. With TORCHINDUCTOR_CACHE_DIR a second run need not compile.
The last line has the median of the steps but the first."""
import statistics

import torch

import shared


def compile_layers(model, way):
    """In place."""
    if way == "apart":
        from transformers.models.qwen3_5 import modeling_qwen3_5
        rule = modeling_qwen3_5.torch_chunk_gated_delta_rule
        modeling_qwen3_5.torch_chunk_gated_delta_rule = torch.compiler.disable(rule)
    for layer in model.model.layers:
        layer.compile(fullgraph=way == "whole", dynamic=False)
    model.loss_function = torch.compile(model.loss_function, dynamic=False)


def main():
    parser = shared.arguments(__doc__)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--compile-layers", choices=("whole", "apart"))
    parser.add_argument("--threads", type=int)
    a = parser.parse_args()
    if a.threads:
        torch.set_num_threads(a.threads)
    model = shared.load(a.model)
    if a.compile_layers:
        compile_layers(model, a.compile_layers)
    seconds = shared.timed_steps(a, shared.steps_of(a, model, list(model.parameters())),
                                 {"compiled": a.compile, "layers": a.compile_layers})
    if a.compile_layers and seconds[1:]:
        print(f"median of {len(seconds) - 1} steps: {statistics.median(seconds[1:]):.3f} s")


if __name__ == "__main__":
    main()
