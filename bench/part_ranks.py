"""Two ranks of one core each: ZeRO's stages beside sifr's own stage 0 and beside the peers, and
what ranks exchange beside plain copies."""
import os
import re
import shutil
import subprocess
import time

import report
from harness import Contestant, clean_environment, failure, good, interleave, median
from part_limits import watch
from part_train import check_losses, given, rate
from report import Row, gigabytes, number

RANKS = 2
STAGE_MARK = {1: "0.98", 2: "0.98", 3: "0.97"}


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


def peer(context, name, script, model, stage, shape, steps, precision="bf16", more=()):
    inputs, (sequences, length) = context.inputs, shape
    command = context.peer(script) + [
        "--model", inputs.model(model, length), "--batches", inputs.batches(inputs.words(model)),
        "--precision", precision, "--sequences", str(sequences), "--length", str(length),
        "--stage", str(stage), "--steps", str(steps), "--seconds", "15", *more]
    return Contestant(f"{name}, stage {stage}", command, context.peer_environment(1), ranks=RANKS,
                      timeout=240)


def stage_rows(part, model, results, tokens):
    zero = results["sifr, stage 0"]
    if not good(zero):
        part.rows.append(Row(f"{model}, stage 0", note=failure(zero)))
        return
    base = rate(zero, tokens)[0]
    for stage in range(4):
        runs = results[f"sifr, stage {stage}"]
        if not good(runs):
            part.rows.append(Row(f"{model}, stage {stage}", note=failure(runs)))
            continue
        value, wide = rate(runs, tokens)
        last = good(runs)[-1]
        step = median([s for r in good(runs) for s in r["seconds"][1:]])
        lost = sum(median([r[f"{k}_seconds"] for r in good(runs)])
                   for k in ("waiting", "agreeing", "beside"))
        peak = max(r["peak_bytes"] for r in good(runs))
        if stage:
            part.rows.append(Row(
                f"{model} bf16, stage {stage}: tokens/s", number(value) + report.spread(wide),
                "sifr, stage 0", number(base), value / base, STAGE_MARK[stage],
                "; ".join(n for n in (f"both ranks: {gigabytes(peak)}", given(runs, zero)) if n)))
        part.rows.append(Row(
            f"{model} bf16, stage {stage}: communication", f"{number(lost)} s", "step",
            f"{number(step)} s", lost / step, "<0.05",
            f"waiting {number(last['waiting_seconds'])}, "
            f"control {number(last['agreeing_seconds'])}, "
            f"processor time beside {number(last['beside_seconds'])} s"))


def peer_rows(part, model, name, stage, precision, results, tokens):
    mine, theirs = results[own_name(stage, precision)], results[f"{name}, stage {stage}"]
    title = f"{model} {precision}, stage {stage}"
    if not good(theirs) or not good(mine):
        part.rows.append(Row(title, "", f"{name}, stage {stage}",
                             note=failure(theirs if good(mine) else mine)))
        return
    (own, owns), (value, wide) = rate(mine, tokens), rate(theirs, tokens)
    first = good(theirs)[0]
    notes = [check_losses(good(mine)[0], first, precision), first.get("optimizer", ""),
             given(mine, theirs)]
    part.rows.append(Row(f"{title}: tokens/s", number(own) + report.spread(owns),
                         f"{name}, stage {stage}", number(value) + report.spread(wide),
                         own / value, "2", "; ".join(n for n in notes if n)))
    peak = [max(r["peak_bytes"] for r in good(runs)) for runs in (mine, theirs)]
    part.rows.append(Row(f"{title}: memory of both ranks", gigabytes(peak[0]),
                         f"{name}, stage {stage}", gigabytes(peak[1]), peak[0] / peak[1], "<1.0"))


def run(context, part):
    if not launcher(RANKS)[0]:
        part.rows.append(Row("two ranks", note="no mpirun here"))
        return
    shape = (1, 32) if context.inputs.tiny else (1, 1024)
    tokens = RANKS * shape[0] * shape[1]
    # Beside the peers in what they can do here: where torch emulates bf16 it has no end.
    emulated = context.limits_of_operations()["bf16_instruction"] == "none"
    precision = "fp32" if emulated else "bf16"
    # All stages of the peers on GPT-2; on Llama their stage 3.
    every = [("DeepSpeed", "train_deepspeed.py", s) for s in (1, 2, 3)] + \
            [("FSDP2", "train_fsdp2.py", s) for s in (2, 3)] if context.python else []
    ends = time.monotonic() + context.allowed
    for model, share in (("gpt2", 0.65), ("llama", 1)):
        context.say(f"two ranks, {model}")
        peers = [p for p in every if model == "gpt2" or p[2] == 3]
        contestants = [ours(context, model, stage, shape, 3) for stage in range(4)]
        if emulated:
            contestants += [ours(context, model, stage, shape, 3, precision)
                            for stage in sorted({p[2] for p in peers})]
        contestants += [peer(context, name, script, model, stage, shape, 2, precision)
                        for name, script, stage in peers]
        results = interleave(contestants, context.rounds, (ends - time.monotonic()) * share,
                             context.say, watch(context.inputs))
        part.data[model] = results
        stage_rows(part, model, results, tokens)
        for name, _, stage in peers:
            peer_rows(part, model, name, stage, precision, results, tokens)
    part.notes.append(
        f"One thread a rank, bound to its core; {shape[0]} × {shape[1]} tokens a rank and step. "
        "Communication: the computing queue's waits for transfers and for control messages (which "
        "hold the wait for a slower rank), and the processor time of all other threads. Memory: "
        "the largest sum over the ranks, shared pages counted in proportion, looked at each "
        "second. Machine: what the multiply-add loop did during the steps of both ranks. "
        "DeepSpeed: its CPU accelerator over gloo; FSDP2: gloo; both with huge pages and an "
        "allocator that gives nothing back." + (
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
    for ranks in (2, 4, 8):
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
            figure = f"step with a slowed transport, stage {stage}, {ranks} ranks"
            if not took:
                part.rows.append(Row(figure, note="failed"))
                continue
            value = median(took)
            part.rows.append(Row(figure, f"{number(value)} s", "predicted",
                                 f"{number(predicted)} s", value / predicted, "<1.05",
                                 "computing replaced by waiting"))


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
    overlap(context, part)
    part.notes.append("The same bytes: for a gather those that arrive at a rank, for a reduction "
                      "those that a rank reads. Results are compared with MPI's in each run. "
                      "Slowed transport: tests/engine/test_overlap.c, its quickest of three steps.")
