"""AdamW and attention by themselves, beside the machine's limits and the peers' kernels."""
import report
from harness import Contestant, failure, good, interleave, median, spread
from part_limits import bandwidth, measure, memory_contestant, memory_medians
from report import Row, gigabytes, number, seconds


def all_of(runs, key):
    return [s for r in good(runs) for s in r[key]]


def run_adam(context, part):
    elements, turns = (1 << 20, 2) if context.inputs.tiny else (100000000, 5)
    contestants = [Contestant("sifr", [context.inputs.program("bench_adam"), str(elements),
                                       str(turns)]), memory_contestant(context.inputs)]
    if context.python:
        for which, name in (("torch", "torch, fused"), ("deepspeed", "DeepSpeed CPUAdam")):
            contestants.append(Contestant(
                name, context.peer("kernels.py") + ["adam", which, str(elements), str(turns)],
                context.peer_environment()))
    results = interleave(contestants, context.rounds, context.allowed, context.say)
    limits = memory_medians(context.inputs, results)
    part.data = {"limits": limits, "results": results}
    if not good(results["sifr"]):
        part.rows.append(Row("AdamW step", mark="0.95", note=failure(results["sifr"])))
        return
    limit, mine = bandwidth(limits), all_of(results["sifr"], "fp32")
    first = good(results["sifr"])[0]
    for kind in ("fp32", "bf16"):
        times = all_of(results["sifr"], kind)
        rate = first[f"bytes_{kind}"] / median(times) / 1e9
        what = "fp32, 28 bytes an element" if kind == "fp32" else "and a bf16 copy, 30 bytes"
        part.rows.append(Row(f"AdamW, {number(elements / 1e6)} M elements, {what}",
                             f"{number(rate)} GB/s{report.spread(spread(times))}", "streams",
                             f"{number(limit)} GB/s", rate / limit, "0.95"))
    for name in list(results)[1:]:
        if not good(results[name]):
            part.rows.append(Row("AdamW, fp32, one step", seconds(median(mine)), name, mark="1.0",
                                 note=failure(results[name])))
            continue
        theirs = all_of(results[name], "fp32")
        part.rows.append(Row("AdamW, fp32, one step", seconds(median(mine)), name,
                             seconds(median(theirs)) + report.spread(spread(theirs)),
                             median(theirs) / median(mine), "1.0"))


def attention_rows(part, precision, length, results, name):
    title = f"attention {precision}, length {length}"
    if not good(results["sifr"]):
        part.rows.append(Row(title, mark="1.0", note=failure(results["sifr"])))
        return
    flops = 4.0 * length * (length + 1) / 2 * 768
    theirs = results.get(name, [])
    for pass_, times in (("forward", 1), ("backward", 2.5)):
        mine = all_of(results["sifr"], pass_)
        row = Row(f"{title}, {pass_}", f"{seconds(median(mine))}, "
                  f"{number(flops * times / median(mine) / 1e9)} GFLOP/s"
                  f"{report.spread(spread(mine))}", name, mark="1.0")
        if good(theirs):
            other = all_of(theirs, pass_)
            row.theirs = seconds(median(other)) + report.spread(spread(other))
            row.ratio = median(other) / median(mine)
        else:
            row.note = failure(theirs)
        part.rows.append(row)


def run_attention(context, part):
    tiny = context.inputs.tiny
    lengths = (64, 128, 256) if tiny else (1024, 4096, 16384)
    emulated = measure(context.inputs, "operations")["bf16_instruction"] == "none"
    for precision in ("bf16", "fp32"):
        # Without instructions for bf16 torch emulates it: its best is fp32.
        theirs = "fp32" if emulated else precision
        name = "torch" if theirs == precision else "torch, fp32"
        memory = []
        for length, share in zip(lengths, (0.1, 0.2, 0.7)):
            turns = "1" if length > 8192 else "3"
            budget = max(20, context.allowed / 2 * share)
            contestants = [Contestant("sifr", [context.inputs.program("bench_attention"),
                                               str(length), precision, turns])]
            if context.python:
                contestants.append(Contestant(
                    name, context.peer("kernels.py") +
                    ["attention", str(length), theirs, turns], context.peer_environment()))
            results = interleave(contestants, context.rounds, budget, context.say)
            part.data[f"{precision} {length}"] = results
            attention_rows(part, precision, length, results, name)
            memory.append([min((r["bytes"] for r in good(results.get(who, []))), default=None)
                           for who in ("sifr", name)])
        # Linear: as many times the memory as the length.
        if memory[0][0] and memory[-1][0]:
            grown = memory[-1][0] / memory[0][0] / (lengths[-1] / lengths[0])
            part.rows.append(Row(
                f"attention {precision}, memory at {lengths[0]}, {lengths[1]}, {lengths[2]}",
                ", ".join(gigabytes(m[0]) for m in memory if m[0]), name,
                ", ".join(gigabytes(m[1]) for m in memory if m[1]), grown, "<1.05",
                "ratio: growth of sifr's beside that of the length; 1 is linear"))
    part.notes.append("12 heads of 64, one causal sequence; backward counted as 2.5 times the "
                      "forward pass's operations. Memory: operands and scratch; torch's as the "
                      "process grew.")
