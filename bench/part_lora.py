"""Adapters on one rank beside transformers and PEFT: LoRA, and QLoRA beside bitsandbytes."""
import time

from harness import Contestant
from part_ranks import measure_beside
from part_train import COMPILED, compile_ahead

MODEL = "llama"
TITLES = {"LoRA": (), "QLoRA": ("--4-bits",)}


def ours(context, kind, shape, precision, steps):
    inputs = context.inputs
    model = inputs.model(MODEL, shape[1])
    return Contestant("sifr", [
        inputs.program("bench_train"), model, precision, str(steps), "--sequences", str(shape[0]),
        "--length", str(shape[1]), "--adapter", inputs.adapter(model), "--batches",
        inputs.batches(inputs.words(MODEL)), "--seconds", "20", *TITLES[kind]])


def peer(context, kind, shape, precision, steps, compiled):
    inputs = context.inputs
    model = inputs.model(MODEL, shape[1])
    command = context.peer("train_lora.py") + [
        "--model", model, "--adapter", inputs.adapter(model), "--batches",
        inputs.batches(inputs.words(MODEL)), "--precision", precision, "--sequences",
        str(shape[0]), "--length", str(shape[1]), "--steps", str(steps), "--seconds", "20",
        *TITLES[kind]] + ["--compile"] * compiled
    name = "PEFT" if kind == "LoRA" else "PEFT, bitsandbytes"
    return Contestant(name + COMPILED * compiled, command, context.peer_environment(),
                      timeout=300)


def measure(context, part, kind, shape, precision, seconds):
    title = f"{MODEL} {precision}, {kind}, {shape[0]} × {shape[1]}"
    peers = [peer(context, kind, shape, precision, 2, c)
             for c in (False, True) if context.python]
    measure_beside(context, part, title, ours(context, kind, shape, precision, 2), peers,
                   precision, shape[0] * shape[1], seconds, "the process")


def run(context, part):
    shape = (1, 32) if context.inputs.tiny else (4, 512)
    emulated = context.limits_of_operations()["bf16_instruction"] == "none"
    precision = "fp32" if emulated else "bf16"
    ends = time.monotonic() + context.allowed
    for kind in TITLES if context.python and not context.inputs.tiny else ():
        compile_ahead(context, f"{kind}, {precision}",
                      peer(context, kind, shape, precision, 0, True))
    for i, kind in enumerate(TITLES):
        measure(context, part, kind, shape, precision,
                (ends - time.monotonic()) / (len(TITLES) - i))
    part.notes.append(
        "Adapters of rank 16 on all products but the head, all weights of the base frozen, held in "
        "the training type or (QLoRA) in NF4, doubly quantised; both begin with the same folders. "
        "PEFT: transformers' model, fused AdamW on the adapters, threads pinned, huge pages, an "
        "allocator that gives nothing back; as it is and compiled. Memory is the largest resident "
        "size of the process. Where the losses differ by more than without adapters, there is no "
        "ratio." + (" In fp32: without instructions for bf16 torch emulates it." if emulated else
                    ""))
