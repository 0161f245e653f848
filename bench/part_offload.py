"""What less memory costs in time: recomputation, optimizer state on disk beside what the disk can
do, and all state where DeepSpeed's ZeRO-3 puts it with the same settings."""
import json
import os
import shutil
import subprocess
import time

import report
from harness import CACHE, Contestant, failure, good, interleave, median, spread
from part_ranks import RANKS, launcher
from part_ranks import ours as ours_of_ranks
from part_ranks import peer
from part_train import ours, rate, what_is_wrong
from report import Row, gigabytes, number, seconds


def turn(context, name, shape, *more):
    sequences, length = shape
    command = ours(context, "llama", "bf16", sequences, length, 3).command
    return Contestant(name, command + list(more))


def steps(results):
    """Seconds of all steps but each turn's first."""
    return [s for r in good(results) for s in r["seconds"][1:]]


def beside(part, figure, results, name, other, mark, note=""):
    """A row of `name`'s time of a step over the other's; None where one was not measured."""
    mine, theirs = steps(results[name]), steps(results[other])
    if not mine or not theirs:
        missing = name if not mine else other
        part.rows.append(Row(figure, note=f"{missing}: {failure(results[missing])}"))
        return
    part.rows.append(Row(figure, seconds(median(mine)) + report.spread(spread(mine)), other,
                         seconds(median(theirs)) + report.spread(spread(theirs)),
                         median(mine) / median(theirs), "<" + mark, note))


def recomputation(context, part, allowed):
    shape = (2, 32) if context.inputs.tiny else (2, 1024)
    first = turn(context, "all kept", shape)
    once = interleave([first], 1, allowed / 3, context.say)[first.name]
    if not good(once):
        part.rows.append(Row("recomputation", note=failure(once)))
        return
    whole = good(once)[0]["activation_bytes"]
    results = interleave([first, turn(context, "half kept", shape, "--activations",
                                      str(whole // 2)),
                          turn(context, "units' inputs kept", shape, "--activations", "0")],
                         context.rounds, allowed * 2 / 3, context.say)
    results[first.name] += once
    part.data["recomputation"] = results
    for name, mark in (("half kept", "1.10"), ("units' inputs kept", "1.33")):
        held = [r["activation_bytes"] for r in good(results[name])]
        note = f"activations {gigabytes(held[0])} of {gigabytes(whole)}" if held else ""
        beside(part, f"llama bf16, {shape[0]} × {shape[1]}, {name}: a step", results, name,
               "all kept", mark, note)


def disk_both_ways(folder, size):
    """GB/s that fio moves, as much read as written, as a step with state on disk does."""
    path = os.path.join(folder, "limit")
    done = subprocess.run(
        ["fio", "--name=limit", f"--filename={path}", "--rw=rw", f"--size={size}", "--bs=1M",
         "--iodepth=32", "--ioengine=io_uring", "--direct=1", "--output-format=json"],
        capture_output=True, text=True, timeout=120, check=True)
    os.unlink(path)
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    return (job["read"]["bw_bytes"] + job["write"]["bw_bytes"]) / 1e9


def state_on_disk(context, part, allowed):
    tiny = context.inputs.tiny
    folder = os.path.join(CACHE, "swap")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    small, large = ((1, 32), (2, 32)) if tiny else ((1, 64), (4, 1024))
    on_disk = turn(context, "state on disk", small, "--disk", folder)
    results, limits = {on_disk.name: []}, []
    for _ in range(context.rounds):     # the disk's own speed moves: each turn has its limit
        if shutil.which("fio"):
            limits.append(disk_both_ways(folder, (16 << 20) if tiny else (2 << 30)))
        results[on_disk.name] += interleave([on_disk], 1, allowed / 8, context.say)[on_disk.name]
    part.data["disk is the limit"] = {"fio_gbytes": limits, **results}
    figure = f"llama bf16, {small[0]} × {small[1]}, optimizer state on disk: its traffic"
    moved = [r["disk_bytes"] / s / 1e9 for r in good(results[on_disk.name])
             for s in r["seconds"][1:]]
    if moved and limits:
        part.rows.append(Row(figure, f"{number(median(moved))} GB/s{report.spread(spread(moved))}",
                             "fio, reading and writing",
                             f"{number(median(limits))} GB/s{report.spread(spread(limits))}",
                             median(moved) / median(limits), "0.85", "over whole steps"))
    else:
        part.rows.append(Row(figure, note=failure(results[on_disk.name]) if not moved
                             else "fio is not installed"))
    results = interleave([turn(context, "in memory", large),
                          turn(context, "state on disk", large, "--disk", folder)],
                         context.rounds, allowed / 2, context.say)
    part.data["computing is the limit"] = results
    beside(part, f"llama bf16, {large[0]} × {large[1]}, optimizer state on disk: a step", results,
           "state on disk", "in memory", "1.10")
    shutil.rmtree(folder, ignore_errors=True)


def beside_deepspeed(context, part, allowed):
    """Optimizer state and parameters in host memory and on disk, two ranks. fp32 where the machine
    has no bf16 instructions: torch emulates them."""
    shape = (1, 32) if context.inputs.tiny else (1, 1024)
    emulated = context.limits_of_operations()["bf16_instruction"] == "none"
    precision, tokens = "fp32" if emulated else "bf16", RANKS * shape[0] * shape[1]
    ends = time.monotonic() + allowed
    for share, tier in ((0.45, "cpu"), (1, "nvme")):
        title = f"gpt2 {precision}, stage 3, state on {tier}"
        folder = os.path.join(CACHE, "swap")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        mine = ours_of_ranks(context, "gpt2", 3, shape, 3, precision, ()
                             if tier == "cpu" else ("--disk", folder, "--parameters-on-disk"))
        theirs = peer(context, "DeepSpeed", "train_deepspeed.py", "gpt2", 3, shape, 2, precision,
                      ("--offload", tier, "--nvme-path", folder))
        results = interleave([mine, theirs], context.rounds, (ends - time.monotonic()) * share,
                             context.say)
        shutil.rmtree(folder, ignore_errors=True)
        part.data[f"beside DeepSpeed, {tier}"] = results
        a, b = good(results[mine.name]), good(results[theirs.name])
        wrong = what_is_wrong(results[mine.name], results[theirs.name], precision)
        if wrong:
            part.rows.append(Row(f"{title}: tokens/s", "", "DeepSpeed, the same", mark="1.0",
                                 note=wrong))
            continue
        (value, wide), (other, others) = rate(a, tokens), rate(b, tokens)
        part.rows.append(Row(f"{title}: tokens/s", number(value) + report.spread(wide),
                             "DeepSpeed, the same", number(other) + report.spread(others),
                             value / other, "1.0"))
        peak = [max(r["peak_bytes"] for r in runs) for runs in (a, b)]
        part.rows.append(Row(f"{title}: memory of both ranks", gigabytes(peak[0]),
                             "DeepSpeed, the same", gigabytes(peak[1]), peak[0] / peak[1], "<1.0"))


def run(context, part):
    ends = time.monotonic() + context.allowed
    recomputation(context, part, context.allowed * 0.3)
    state_on_disk(context, part, (ends - time.monotonic()) * 0.45)
    if not context.python or not launcher(RANKS)[0]:
        part.rows.append(Row("beside DeepSpeed", note="no mpirun here" if context.python
                             else f"no peers: {context.why_no_peers}"))
    else:
        beside_deepspeed(context, part, ends - time.monotonic())
    part.notes.append("One rank, all threads; beside DeepSpeed two ranks of one core each. The "
                      "limits of memory themselves: [memory.md](memory.md); a model larger than "
                      "memory: [larger.md](larger.md).")
