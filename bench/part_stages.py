"""A pipeline of two ranks beside torch's, copies of shards on four ranks beside FSDP2's hybrid
sharding, and two tensor ranks beside torch's DTensor and DeepSpeed's AutoTP."""
import time

from harness import Contestant
from part_ranks import launcher, measure_beside
from part_train import COMPILED, compile_ahead
from report import Row

MODEL = "llama"     # its head is not tied, so that torch's stages share no weight
MICRO_BATCHES = 8
SHARD_SIZE = 2


class Case:
    """One mesh: its ranks, what sifr is told of it, and peers: (name, script, what it is told,
    whether it is measured compiled, too)."""

    def __init__(self, name, ranks, own, peers, micro_batches=1, data=1):
        self.name, self.ranks, self.own, self.peers = name, ranks, own, peers
        self.micro_batches, self.data = micro_batches, data     # data: ranks with batches of theirs

    def tokens(self, shape):
        return self.data * self.micro_batches * shape[0] * shape[1]


CASES = [
    Case("2 stages", 2, ("--stages", "2", "--micro-batches", str(MICRO_BATCHES)),
         [("PipelineStage, 1F1B", "train_pipeline.py", ("--micro-batches", str(MICRO_BATCHES)),
           True)], MICRO_BATCHES),
    Case("2 replicas x 2 shards, stage 3", 4, ("--stage", "3", "--shard-size", str(SHARD_SIZE)),
         [("FSDP2, hybrid", "train_fsdp2.py", ("--stage", "3", "--shard-size", str(SHARD_SIZE)),
           True)], data=4),
    Case("2 tensors", 2, ("--tensors", "2"),
         [("DTensor", "train_tensors.py", (), True),
          ("DeepSpeed, AutoTP", "train_deepspeed.py", ("--stage", "0", "--tensors", "2"), False)]),
]


def ours(context, case, shape, precision, steps):
    inputs = context.inputs
    start, environment = launcher(case.ranks, bind=case.ranks <= context.threads)
    command = start + [
        inputs.program("bench_train"), inputs.model(MODEL, shape[1]), precision, str(steps),
        "--threads", "1", "--sequences", str(shape[0]), "--length", str(shape[1]), "--batches",
        inputs.batches(inputs.words(MODEL)), "--seconds", "20", *case.own]
    return Contestant("sifr", command, environment, ranks=case.ranks, program="bench_train")


def peer(context, case, which, shape, precision, steps, compiled):
    inputs = context.inputs
    name, script, theirs, _ = which
    command = context.peer(script) + [
        "--model", inputs.model(MODEL, shape[1]), "--batches",
        inputs.batches(inputs.words(MODEL)), "--precision", precision, "--sequences",
        str(shape[0]), "--length", str(shape[1]), "--steps", str(steps), "--seconds", "20",
        *theirs] + ["--compile"] * compiled
    return Contestant(name + COMPILED * compiled, command, context.peer_environment(1),
                      ranks=case.ranks, timeout=300)


def measure(context, part, case, shape, precision, seconds):
    title = f"{MODEL} {precision}, {case.name}, {shape[0]} × {shape[1]}"
    peers = [peer(context, case, which, shape, precision, 2, c)
             for which in case.peers for c in (False, True)[:1 + which[3]] if context.python]
    measure_beside(context, part, title, ours(context, case, shape, precision, 2), peers,
                   precision, case.tokens(shape), seconds, "all ranks")


def run(context, part):
    if not launcher(2)[0]:
        part.rows.append(Row("stages", note="no mpirun here"))
        return
    shape = (1, 32) if context.inputs.tiny else (1, 256)
    emulated = context.limits_of_operations()["bf16_instruction"] == "none"
    precision = "fp32" if emulated else "bf16"
    ends = time.monotonic() + context.allowed
    for case in CASES if context.python and not context.inputs.tiny else ():
        for which in case.peers:
            compile_ahead(context, f"{which[0]}, {precision}",
                          peer(context, case, which, shape, precision, 0, which[3]))
    for i, case in enumerate(CASES):
        measure(context, part, case, shape, precision,
                (ends - time.monotonic()) / (len(CASES) - i))
    part.notes.append(
        f"One thread a rank. 2 stages: {MICRO_BATCHES} micro batches a step, 1f1b; sifr cuts the "
        "units by their time, torch's script the blocks in halves. Four ranks share "
        f"{context.threads} cores. PyTorch: gloo, huge pages, an allocator that gives nothing "
        "back, ranks pinned; as it is and compiled by blocks. Where the losses differ by more than "
        "on one rank, there is no ratio." + (
            " In fp32: without instructions for bf16 torch emulates it." if emulated else ""))
