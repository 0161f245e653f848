"""Adapters on one rank beside transformers and PEFT: LoRA, and QLoRA beside bitsandbytes."""
import os
import time

from harness import Contestant, interleave
from part_limits import watch
from part_ranks import rows_beside
from part_train import COMPILED, compile_ahead, failure, good, rate
from report import Row, gigabytes, number

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
    context.say(title)
    contestants = [ours(context, kind, shape, precision, 2)]
    if context.python:
        contestants += [peer(context, kind, shape, precision, 2, c) for c in (False, True)]
    results = interleave(contestants, context.rounds, seconds, context.say, watch(context.inputs))
    part.data[title] = results
    tokens, mine = shape[0] * shape[1], results["sifr"]
    for name in (n for n in results if n != "sifr"):
        rows_beside(part, title, name, mine, results[name], precision, tokens, whose="the process")
    if len(results) == 1:
        note = "" if good(mine) else failure(mine)
        part.rows.append(Row(f"{title}: tokens/s", number(rate(mine, tokens)[0]), note=note))
        part.rows.append(Row(f"{title}: memory of the process", gigabytes(
            max((r["peak_bytes"] for r in good(mine)), default=0)), note=note))


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
