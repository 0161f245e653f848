"""Two ranks of one core each: ZeRO's stages beside sifr's own stage 0 and beside the peers, and
what ranks exchange beside plain copies."""
import os
import re
import shutil
import subprocess
import time

import report
from harness import Contestant, clean_environment, failure, good, interleave, median, spread
from harness import run as run_once
from harness import turn_ratios
from inputs import STEPS, TOKENS
from part_limits import watch
from part_train import COMPILED, compile_ahead, given, rate, what_is_wrong
from report import Row, gigabytes, number

RANKS = 2
PAIRS_SHARE = 0.3   # of the time: stages beside stage 0; peers have the rest
STAGE_MARK = {1: "0.98", 2: "0.98", 3: "0.97"}
# The peers in their quicker forms: DeepSpeed's stage 3 loses by torch.compile (NOTES.md).
QUICKEST = [("DeepSpeed" + COMPILED, "train_deepspeed.py", 1),
            ("DeepSpeed" + COMPILED, "train_deepspeed.py", 2),
            ("DeepSpeed", "train_deepspeed.py", 3),
            ("FSDP2" + COMPILED, "train_fsdp2.py", 2), ("FSDP2" + COMPILED, "train_fsdp2.py", 3)]


def launcher(ranks, bind=True):
    """(command, environment) of the MPI that is there."""
    mpirun = os.environ.get("MPIEXEC", "mpirun")
    if not shutil.which(mpirun):
        return None, {}
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True,
                             check=False).stdout
    if "Open MPI" not in version:
        return [mpirun, "-n", str(ranks)] + (["-bind-to", "core"] if bind else []), {}
    return [mpirun, "-n", str(ranks)], {
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "core" if bind else "none"}


def own_name(stage, precision):
    return f"sifr, stage {stage}" + (", fp32" if precision == "fp32" else "")


def ours(context, model, stage, shape, steps, precision="bf16", more=()):
    inputs, (sequences, length) = context.inputs, shape
    start, environment = launcher(RANKS)
    command = start + [
        inputs.program("bench_train"), inputs.model(model, length), precision, str(steps),
        "--threads", "1", "--sequences", str(sequences), "--length", str(length), "--stage",
        str(stage), "--batches", inputs.batches(inputs.words(model)), "--seconds", "15", *more]
    return Contestant(own_name(stage, precision), command, environment, ranks=RANKS,
                      program="bench_train")


def pair(context, model, stage, shape, seconds, steps=None, precision="bf16"):
    """Steps of a stage and of stage 0 by turns, in the same processes, until so many seconds are
    over; its result has both, in this order."""
    tokens = RANKS * shape[0] * shape[1]
    steps = steps or min(63, STEPS * TOKENS // tokens - 1)
    c = ours(context, model, stage, shape, steps, precision,
             ("--beside", "0", "--whole", str(seconds), "--seconds", "1e9"))
    c.name, c.timeout = f"{c.name} and 0", seconds + 120
    return c


def run_pairs(context, model, shape, seconds):
    """{stage: what it and stage 0 did in turns}, in so many seconds for all."""
    ends, found = time.monotonic() + seconds, {}
    for stage in STAGE_MARK:
        context.say(f"two ranks, {model}, stages {stage} and 0 in turns")
        each = (ends - time.monotonic()) / (len(STAGE_MARK) - len(found))
        found[stage] = run_once(pair(context, model, stage, shape, max(10, each)),
                                watch(context.inputs))
    return found


def peer(context, name, script, model, stage, shape, steps, precision="bf16", more=()):
    inputs, (sequences, length) = context.inputs, shape
    command = context.peer(script) + [
        "--model", inputs.model(model, length), "--batches", inputs.batches(inputs.words(model)),
        "--precision", precision, "--sequences", str(sequences), "--length", str(length),
        "--stage", str(stage), "--steps", str(steps), "--seconds", "15", *more]
    command += ["--compile"] if name.endswith(COMPILED) else []
    return Contestant(f"{name}, stage {stage}", command, context.peer_environment(1), ranks=RANKS,
                      timeout=240)


def stage_rows(part, model, pairs, tokens):
    """A row for each stage beside stage 0, whose steps it took turns with."""
    for stage, result in pairs.items():
        if "failed" in result:
            part.rows.append(Row(f"{model} bf16, stage {stage}: tokens/s",
                                 beside="sifr, stage 0, in turns", mark=STAGE_MARK[stage],
                                 note=result["failed"]))
            continue
        own, base = result["by"]
        plain = [b / a for a, b in zip(own["seconds"][1:], base["seconds"][1:])]
        ratios = turn_ratios(result["by"])
        value, wide = rate([own], tokens)
        slowest = [median([g for g in one.get("least", []) if g]) for one in (own, base)]
        notes = [f"median of {len(ratios)} turns{report.spread(spread(ratios))}, by time alone "
                 f"{number(median(plain))}{report.spread(spread(plain))}",
                 f"both ranks: {gigabytes(own['resident_bytes'])}",
                 f"slower core: {number(slowest[0])} and {number(slowest[1])} GFLOP/s"
                 if all(slowest) else ""]
        part.rows.append(Row(
            f"{model} bf16, stage {stage}: tokens/s", number(value) + report.spread(wide),
            "sifr, stage 0, in turns", number(rate([base], tokens)[0]), median(ratios),
            STAGE_MARK[stage], "; ".join(n for n in notes if n)))
    for stage in range(4):
        sides = [one for result in pairs.values() for one in result.get("by", [])
                 if one["stage"] == stage]
        if sides:
            communication_rows(part, f"{model} bf16, stage {stage}: communication", sides)


def communication(r):
    """Seconds of a step, the mean of the ranks, that computing could have had: its thread stood
    still for another rank or for bytes, or other threads of sifr's ran in its place. Those run
    while it stands still, too, which does not count twice: `lost` is all the time in which it did
    not run, whoever did."""
    still = r["waiting_seconds"] + r["agreeing_seconds"]
    return still + min(r["beside_seconds"], max(0, r["lost_seconds"] - still))


def communication_rows(part, title, sides):
    """What was measured, and what is left of it without the waiting that the cores' rates meanwhile
    explain."""
    step = median([s for r in sides for s in r["seconds"][1:]])
    lost, late, moving, control, beside = (median(values) for values in zip(*(
        (communication(r), r["late_seconds"], r["moving_seconds"], r["control_seconds"],
         r["beside_seconds"]) for r in sides)))
    part.rows.append(Row(
        title, f"{number(lost)} s", "step", f"{number(step)} s", lost / step, "<0.05",
        f"for the other rank {number(late)}, for bytes {number(moving)}, control "
        f"{number(control)}, processor time beside {number(beside)} s"))
    uneven = [r["uneven"] for r in sides if r.get("uneven") is not None]
    if not uneven:
        return
    explained = min(late, median(uneven) * step)
    part.rows.append(Row(
        f"{title}, less what unlike cores can explain", f"{number(lost - explained)} s", "step",
        f"{number(step)} s", (lost - explained) / step, "",
        f"by the cores' rates the quicker one waits at most {number(median(uneven) * step)} s"))


def rows_beside(part, title, name, mine, theirs, precision, tokens, whose, marks=("", "")):
    """Tokens/s and memory beside a peer's; `marks`: of the one and of the other."""
    wrong = what_is_wrong(mine, theirs, precision)
    if wrong:
        part.rows.append(Row(f"{title}: tokens/s", "", name, mark=marks[0], note=wrong))
        return
    (own, owns), (value, wide) = rate(mine, tokens), rate(theirs, tokens)
    notes = [good(theirs)[0].get("optimizer", ""), report.turns(good(theirs)),
             given(mine, theirs, own / value)]
    part.rows.append(Row(f"{title}: tokens/s", number(own) + report.spread(owns), name,
                         number(value) + report.spread(wide), own / value, marks[0],
                         "; ".join(n for n in notes if n)))
    peak = [max(r["peak_bytes"] for r in good(runs)) for runs in (mine, theirs)]
    part.rows.append(Row(f"{title}: memory of {whose}", gigabytes(peak[0]), name,
                         gigabytes(peak[1]), peak[0] / peak[1], marks[1]))


def measure_beside(context, part, title, ours, peers, precision, tokens, seconds, whose):
    """Turns of sifr and its peers; rows of sifr beside each peer, or alone without peers."""
    context.say(title)
    results = interleave([ours] + peers, context.rounds, seconds, context.say,
                         watch(context.inputs))
    part.data[title] = results
    mine = results[ours.name]
    for other in peers:
        rows_beside(part, title, other.name, mine, results[other.name], precision, tokens, whose)
    if not peers:
        note = "" if good(mine) else failure(mine)
        part.rows.append(Row(f"{title}: tokens/s", number(rate(mine, tokens)[0]), note=note))
        part.rows.append(Row(f"{title}: memory of {whose}", gigabytes(
            max((r["peak_bytes"] for r in good(mine)), default=0)), note=note))


def peer_rows(part, model, name, stage, precision, results, tokens):
    them = f"{name}, stage {stage}"
    rows_beside(part, f"{model} {precision}, stage {stage}", them,
                results[own_name(stage, precision)], results[them], precision, tokens,
                "both ranks", ("2", "<1.0"))


def run(context, part):
    if not launcher(RANKS)[0]:
        part.rows.append(Row("two ranks", note="no mpirun here"))
        return
    shape = (1, 32) if context.inputs.tiny else (1, 1024)
    tokens = RANKS * shape[0] * shape[1]
    # Beside the peers in what they can do here: where torch emulates bf16 it has no end.
    emulated = context.limits_of_operations()["bf16_instruction"] == "none"
    precision = "fp32" if emulated else "bf16"
    every = QUICKEST if context.python else []
    ends = time.monotonic() + context.allowed
    for model in ("gpt2", "llama") if not context.inputs.tiny else ():
        for name, script, stage in every:
            if name.endswith(COMPILED):
                compile_ahead(context, f"two ranks, {model} {precision}, {name}, stage {stage}",
                              peer(context, name, script, model, stage, shape, 0, precision))
    for model, share in (("gpt2", 0.55), ("llama", 1)):
        model_ends = time.monotonic() + (ends - time.monotonic()) * share
        pairs = run_pairs(context, model, shape, (model_ends - time.monotonic()) *
                          (PAIRS_SHARE if every else 1))
        contestants = [ours(context, model, stage, shape, 2, precision)
                       for stage in sorted({p[2] for p in every})]
        contestants += [peer(context, name, script, model, stage, shape, 2, precision)
                        for name, script, stage in every]
        results = interleave(contestants, context.rounds, model_ends - time.monotonic(),
                             context.say, watch(context.inputs))
        part.data[model] = {"pairs": pairs, "results": results}
        stage_rows(part, model, pairs, tokens)
        for name, _, stage in every:
            peer_rows(part, model, name, stage, precision, results, tokens)
    part.notes.append(
        f"One thread a rank, bound to its core; {shape[0]} × {shape[1]} tokens a rank and step. "
        "Stages beside stage 0: the same processes make each step with the one and with the other, "
        "one after the other, so that both get the same machine; ratio: seconds times the rate of "
        "the slower core meanwhile, by pieces of a second, for which the other rank waits. "
        "Communication, the mean of both ranks: the computing thread's waits for transfers and "
        "for control messages, and the processor time of other threads that it lost to them. For "
        "the other rank: nothing moved, since that one was not there yet. Less what "
        "unlike cores can explain: that, as far as the multiply-add loop's rates on both cores, by "
        "pieces of a second, would have the quicker one wait at each piece's end; an upper bound, "
        "since the rates are noisy and ranks run ahead of each other. Memory: the sum "
        "over the ranks, shared pages counted in proportion; beside peers the largest, looked at "
        "each second. Machine: what the loop did during the steps of both ranks. "
        "DeepSpeed: its CPU accelerator over gloo; FSDP2: gloo; both with huge pages and an "
        "allocator that gives nothing back, each rank pinned, compiled where that is quicker "
        "(NOTES.md); FSDP2 has no stage 1. Where the losses differ by more than on one rank, there "
        "is no ratio." + (
            " In fp32 beside the peers: without instructions for bf16 torch emulates it." if
            emulated else ""))


def overlap(context, part):
    """A step with a transport that is slowed down and kernels replaced by waiting, beside what the
    schedule's clocks say: by the program that the suite has for it, where the tests are built."""
    subprocess.run(["ninja", "-C", context.inputs.build, "test_overlap"], check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    program = context.inputs.program(os.path.join("tests", "test_overlap"))
    if not os.path.exists(program):
        part.rows.append(Row("overlap", note="the tests are not configured here"))
        return
    for ranks in (1, 2, 4, 8):
        start, environment = launcher(ranks, bind=False)
        for stage in (2, 3):
            took, predicted = [], None
            for _ in range(1 if context.inputs.tiny else 3):
                said = subprocess.run(start + [program, str(stage), "0.7"], text=True, check=False,
                                      capture_output=True, timeout=60,
                                      env=clean_environment(environment)).stdout
                if found := re.search(r"step predicted ([0-9.]+) s, measured ([0-9.]+) s", said):
                    predicted = float(found[1])
                    took.append(float(found[2]))
            part.data[f"overlap, stage {stage}, {ranks} ranks"] = [predicted, took]
            figure = f"step with a slowed transport, stage {stage}, {ranks} rank{'s' * (ranks > 1)}"
            if not took:
                part.rows.append(Row(figure, note="failed"))
                continue
            value = median(took)
            part.rows.append(Row(figure, f"{number(value)} s", "predicted",
                                 f"{number(predicted)} s",
                                 max(value / predicted, predicted / value), "<1.05",
                                 "ratio: the larger to the smaller; computing replaced by waiting"))


def run_comm(context, part):
    if not launcher(RANKS)[0]:
        part.rows.append(Row("exchange", note="no mpirun here"))
        return
    for ranks in (2, 4):
        start, environment = launcher(ranks, bind=False)
        most = "1048576" if context.inputs.tiny else "134217728"
        c = Contestant("sifr", start + [context.inputs.program("bench_comm"), most], environment)
        results = interleave([c], 1, context.allowed / 2, context.say)["sifr"]
        part.data[f"{ranks} ranks"] = results
        if not good(results):
            part.rows.append(Row(f"{ranks} ranks", note=failure(results)))
            continue
        for r in good(results)[0]["rows"]:
            size = f"{r['bytes'] / 2 ** 20:.0f} MiB, {ranks} ranks"
            if "hidden" in r:
                part.rows.append(Row(f"gather beside computing, {size}",
                                     f"{number(r['both_s'] * 1e3)} ms", "one after the other",
                                     f"{number((r['gather_s'] + r['computing_s']) * 1e3)} ms",
                                     (r["gather_s"] + r["computing_s"]) / r["both_s"]))
                continue
            gather = r["operation"] == "all_gather"
            what = "gather by copy" if gather else "ordered reduction"
            mark = ("0.9" if gather else "1.3") if ranks == 2 else ""
            part.rows.append(Row(f"{what}, {size}", f"{number(r['seconds'] * 1e3)} ms",
                                 "each rank copying the same bytes",
                                 f"{number(r['copy_seconds'] * 1e3)} ms",
                                 r["copy_seconds"] / r["seconds"], mark))
            part.rows.append(Row(f"{what}, {size}", f"{number(r['seconds'] * 1e3)} ms",
                                 "MPI's own", f"{number(r['mpi_seconds'] * 1e3)} ms",
                                 r["mpi_seconds"] / r["seconds"]))
            if r["plain_seconds"]:
                part.rows.append(Row(f"{what}, {size}", f"{number(r['seconds'] * 1e3)} ms",
                                     "plain copies out of the other ranks' memory",
                                     f"{number(r['plain_seconds'] * 1e3)} ms",
                                     r["plain_seconds"] / r["seconds"]))
    overlap(context, part)
    part.notes.append("The same bytes: for a gather those that arrive at a rank, for a reduction "
                      "those that a rank reads. Results are compared with MPI's in each run. "
                      "Slowed transport: tests/engine/test_overlap.c, the quickest of three steps, the "
                      "median of three runs.")
