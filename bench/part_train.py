"""Training steps on one rank: share of the machine's limit, and beside PyTorch at its best."""
import os
import time
from dataclasses import dataclass

import report
from harness import CACHE, Contestant, failure, good, interleave, median, spread
from harness import run as run_once
from harness import turn_ratios
from part_limits import measure, watch
from report import Row, gigabytes, number

# What a loss may differ by, relative. At the first step it says whether weights and batches are the
# same: other ones of this kind lie 1e-3 away. Later ones say whether the same model is trained.
LOSS_BOUNDS = {"fp32": (2e-5, 1e-3), "bf16": (2e-3, 1e-2)}


SHARE_MARK = {"fp32": "0.70", "bf16": "0.60"}
PEER_MARK = {"fp32": "1.2", "bf16": "1.3"}
COMPILED = ", compiled"     # of a name
AT_BEST = "the loop at its best"
EMULATED_SECONDS = 120


def ours(context, model, precision, sequences, length, steps, *more):
    inputs = context.inputs
    return Contestant("sifr", [
        inputs.program("bench_train"), inputs.model(model, length), precision, str(steps),
        "--sequences", str(sequences), "--length", str(length),
        "--batches", inputs.batches(inputs.words(model)), "--seconds", "30", *more])


def torch(context, model, precision, sequences, length, compiled, steps):
    inputs = context.inputs
    command = context.peer("train_torch.py") + [
        "--model", inputs.model(model, length), "--batches", inputs.batches(inputs.words(model)),
        "--precision", precision, "--sequences", str(sequences), "--length", str(length),
        "--steps", str(steps), "--seconds", "30"] + (["--compile"] if compiled else [])
    return Contestant(f"torch {precision}" + COMPILED * compiled, command,
                      context.peer_environment(), timeout=EMULATED_SECONDS if steps == 1 else 400)


def rate(results, tokens):
    """(median tokens a second over the steps of all turns, their spread); the first step of a turn
    is not counted."""
    rates = [tokens / s for r in good(results) for s in r["seconds"][1:]]
    return median(rates), spread(rates)


def check_losses(a, b, precision):
    """What is wrong, or nothing."""
    first, later = LOSS_BOUNDS[precision]
    for step, (x, y) in enumerate(zip(a["losses"], b["losses"])):
        bound = first if step == 0 else later
        if not abs(x / y - 1) <= bound:
            return f"other loss at step {step + 1}: {x:.5f} and {y:.5f}, more than {bound:g} apart"
    return ""


def what_is_wrong(mine, theirs, precision):
    """Why two contestants cannot be compared; nothing where they trained the same."""
    for runs in (mine, theirs):
        if not good(runs):
            return failure(runs)
    return check_losses(good(mine)[0], good(theirs)[0], precision)


def machine(results):
    """What the processors gave meanwhile, in GFLOP/s of the multiply-add loop in fp32, by turns."""
    return median([r["machine"] for r in good(results) if r.get("machine")])


def shares(results, gflops):
    """Of what the processors gave, median over the steps, of so many operations each."""
    return median([gflops / s / given for r in good(results)
                   for s, given in zip(r["seconds"][1:], r.get("machine_steps") or []) if given])


def share_rows(part, cell, precision, results, limits):
    """Beside what the loop did during the steps, and beside its best, before and after this very
    cell: a neighbour on the same cores takes from both."""
    title = f"{cell.title(precision)}: share of the limit"
    if not good(results):
        part.rows.append(Row(title, mark=SHARE_MARK[precision], note=failure(results)))
        return
    value, wide = rate(results, cell.tokens())
    flops = good(results)[0]["flops_per_token"]
    now = machine(results)
    instruction = limits[0][f"{precision}_gflops_all"] / limits[0]["fp32_gflops_all"]
    best = max([l["fp32_gflops_all"] for l in limits] + ([now] if now else [])) * instruction
    said = f"{number(value)} tokens/s"
    part.rows.append(Row(title, said + report.spread(wide), "multiply-add loop meanwhile",
                         f"{number(now * instruction)} GFLOP/s" if now else "",
                         shares(results, cell.tokens() * flops / 1e9 / instruction),
                         SHARE_MARK[precision],
                         f"{number(flops / 1e6)} MFLOP a token; {report.turns(good(results))}"))
    part.rows.append(Row(title, said, AT_BEST, f"{number(best)} GFLOP/s",
                         value * flops / 1e9 / best, "", "" if not now else
                         f"the machine gave {now * instruction / best * 100:.0f} % of that"))


def given(mine, theirs, ratio):
    """A note: what the processors gave to each, and the ratio if that had been the same."""
    a, b = machine(mine), machine(theirs)
    if not a or not b:
        return ""
    return f"machine: {number(a)} and {number(b)} GFLOP/s, by that {number(ratio * b / a)}"


def peer_rows(part, cell, precision, results):
    """A row for each form of the peer, the mark at the quickest. A form that did not train, or not
    the same, keeps the mark, as one that is not measured."""
    tokens, title, ours_ = cell.tokens(), cell.title(precision), results[own_name(precision)]
    if not good(ours_):
        return
    mine, found = rate(ours_, tokens)[0], []    # (tokens a second, row, peak memory)
    every = "torch" if cell.emulated and precision == "bf16" else f"torch {precision}"
    for name in (n for n in results if n.startswith(every)):
        emulates = cell.emulated and name.startswith("torch bf16")
        runs = results[name]
        wrong = what_is_wrong(ours_, runs, precision)
        if wrong:
            part.rows.append(Row(f"{title}: tokens/s", number(mine), name,
                                 mark="" if emulates else PEER_MARK[precision],
                                 note=("bf16 emulated here: " if emulates else "") + wrong))
            continue
        value, wide = rate(runs, tokens)
        row = Row(f"{title}: tokens/s", number(mine), name, number(value) + report.spread(wide),
                  mine / value, "", "; ".join(t for t in (
                      "bf16 emulated here" if emulates else "", report.turns(good(runs)),
                      given(ours_, runs, mine / value)) if t))
        part.rows.append(row)
        found.append((value, row, max(r["peak_bytes"] for r in good(runs))))
    if not found:
        return
    best = max(found, key=lambda f: f[0])
    best[1].mark = PEER_MARK[precision]
    peak = max(r["peak_bytes"] for r in good(ours_))
    part.rows.append(Row(f"{title}: peak memory", gigabytes(peak), best[1].beside,
                         gigabytes(best[2]), peak / best[2], "<0.6"))


@dataclass
class Cell:
    """A model and a shape, which both precisions and all forms of the peer train in turns."""
    model: str
    shape: tuple        # sequences, length
    emulated: bool      # bf16 without instructions for it

    def tokens(self):
        return self.shape[0] * self.shape[1]

    def title(self, precision=""):
        return f"{self.model}{' ' * bool(precision)}{precision}, {self.shape[0]} × {self.shape[1]}"


def own_name(precision):
    return f"sifr {precision}"


def contestants_of(context, cell):
    """sifr in both precisions; torch as it is and compiled. Where bf16 is emulated torch's users
    take fp32, and that is its best for both."""
    made = []
    for precision in ("fp32", "bf16"):
        mine = ours(context, cell.model, precision, *cell.shape, 2)
        mine.name = own_name(precision)
        made.append(mine)
        if context.python and not (cell.emulated and precision == "bf16"):
            made += [torch(context, cell.model, precision, *cell.shape, compiled, 2)
                     for compiled in (False, True)]
    return made


def measure_cell(context, part, cell, budget, tried):
    context.say(f"{cell.title()}, {budget:.0f} s")
    limits = [measure(context.inputs, "operations")]
    results = interleave(contestants_of(context, cell), context.rounds, budget, context.say,
                         watch(context.inputs))
    limits.append(measure(context.inputs, "operations"))
    results.update(tried)
    part.data[cell.title()] = {"results": results, "limits": limits}
    for precision in ("fp32", "bf16"):
        share_rows(part, cell, precision, results[own_name(precision)], limits)
        peer_rows(part, cell, precision, results)


def try_emulated(context, cell):
    """One step of torch in bf16 without instructions for it, that its row may say what it takes."""
    context.say(f"torch bf16, emulated, {cell.title()}")
    return {"torch bf16": [run_once(torch(context, cell.model, "bf16", *cell.shape, False, 1),
                                    watch(context.inputs))]}


def compile_ahead(context, name, contestant):
    """torch.compile keeps what it has made, so the minutes that it takes at the first time are not
    taken from the measurement. `contestant` makes one step, which is not counted."""
    folder = os.path.join(CACHE, "inductor")
    stamp = os.path.join(folder, "made-" + name.replace(" ", "-").replace(",", ""))
    made_of = os.path.join(CACHE, "venv", "made-of")
    key = open(made_of).read() if os.path.exists(made_of) else ""
    if os.path.exists(stamp) and open(stamp).read() == key:
        return
    context.say(f"torch.compile, {name}: once, for later runs, too")
    contestant.timeout = 900
    if "failed" in run_once(contestant):
        return
    os.makedirs(folder, exist_ok=True)
    with open(stamp, "w") as f:
        f.write(key)


def same_bits_row(context, part):
    """What the promise of the same bits at any number of ranks costs one that needs it not: sums
    of gradients in a tree, beside those from left to right, in turns in one process. The cost is
    that of the additions, by the kernels' clocks: whole steps differ by more than that anyway."""
    tiny = context.inputs.tiny
    sequences, length = (1, 32) if tiny else (1, 256)
    title = f"gpt2 bf16, 4 micro batches of {sequences} × {length}: gradients in a tree"
    context.say(title)
    r = run_once(ours(context, "gpt2", "bf16", sequences, length, 15, "--micro-batches", "4",
                      "--beside", "0", "--sequential", "--seconds", "1e9", "--whole",
                      "10" if tiny else "100"), watch(context.inputs))
    if "failed" in r:
        part.rows.append(Row(title, mark="<0.03", note=r["failed"]))
        return
    part.data["same bits"] = r
    tree, plain = (side["kernels"].get("add_into", {"ms": 0})["ms"] / 1e3 for side in r["by"])
    step = median(r["by"][1]["seconds"][1:])
    by = turn_ratios(r["by"])
    part.rows.append(Row(
        title, f"{number(tree)} s", "additions from left to right; step",
        f"{number(plain)} s; {number(step)} s", (tree - plain) / step, "<0.03",
        f"ratio: what additions take more, of a step; whole steps in turns {number(median(by))}"
        f"{report.spread(spread(by))}, {len(by)} turns"))


def at_best(rows):
    """A note: how many shares would reach the mark beside the loop at its best."""
    marks = [(Row("", ratio=best.ratio, mark=row.mark).reached())
             for row, best in zip(rows, rows[1:]) if best.beside == AT_BEST]
    return (f"Beside the loop at its best {marks.count(True)} of {len(marks)} shares would reach "
            "their mark.")


def run(context, part):
    tiny = context.inputs.tiny
    ends = time.monotonic() + context.allowed
    emulated = context.limits_of_operations()["bf16_instruction"] == "none"
    cells = [Cell(model, shape, emulated)
             for shape in ((2, 32) if tiny else (4, 1024), (1, 64) if tiny else (1, 4096))
             for model in ("gpt2", "llama")]
    tried = {}
    if context.python:
        for cell in cells if not tiny else []:
            for precision in ("fp32",) if emulated else ("fp32", "bf16"):
                compile_ahead(context, f"one rank, {cell.title(precision)}", torch(
                    context, cell.model, precision, *cell.shape, True, 0))
        tried = try_emulated(context, cells[0]) if emulated else {}
    same_bits_row(context, part)
    for i, cell in enumerate(cells):
        measure_cell(context, part, cell, (ends - time.monotonic()) / (len(cells) - i), tried)
        tried = {}
    part.notes.append(
        "All start from the weights that `sifr init` wrote and take the same ids in the same "
        "order; losses differ by at most " + ", ".join(
            f"{first:g} at the first step and {later:g} after it ({precision})"
            for precision, (first, later) in LOSS_BOUNDS.items()) +
        ", relative, or the row says so and has no ratio. sifr has no settings. PyTorch: autocast "
        "in bf16, fused AdamW, its scaled dot product attention, threads pinned, huge pages, an "
        "allocator that gives nothing back; as it is and compiled. The mark stands at its quickest "
        "form; the goals beyond the marks are 80 % of the limit in fp32 and 70 % in bf16, and 1.4 "
        "and 1.5 times PyTorch. Memory is the largest resident size of the process. The limit is "
        "what the loop did during the steps that count, looked at ten times a second on each core: "
        "where a neighbour takes part of a core, the loop loses more than products do, so the "
        "share is a little flattered the further the loop stays below its best, which is the row "
        "below it. " + at_best(part.rows))
    if emulated and context.python:
        part.notes.append("This processor has no instructions for bf16: PyTorch emulates them, "
                          "which is tried once, on gpt2; its best here is fp32, and the marks of "
                          "bf16 stand beside that.")
