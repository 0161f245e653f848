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


def ours(context, model, precision, sequences, length, steps, *more):
    inputs = context.inputs
    return Contestant("sifr", [
        inputs.program("bench_train"), inputs.model(model, length), precision, str(steps),
        "--sequences", str(sequences), "--length", str(length),
        "--batches", inputs.batches(inputs.words(model)), "--seconds", "30", *more])


def torch(context, model, precision, sequences, length, compiled, steps, said=""):
    inputs = context.inputs
    command = context.peer("train_torch.py") + [
        "--model", inputs.model(model, length), "--batches", inputs.batches(inputs.words(model)),
        "--precision", precision, "--sequences", str(sequences), "--length", str(length),
        "--steps", str(steps), "--seconds", "30"]
    return Contestant(("torch, compiled" if compiled else "torch") + said,
                      command + (["--compile"] if compiled else []), context.peer_environment(),
                      timeout=150 if steps == 1 else 300)


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


def machine(results):
    """What the processors gave meanwhile, in GFLOP/s of the multiply-add loop in fp32, by turns."""
    return median([r["machine"] for r in good(results) if r.get("machine")])


def share_row(part, cell, results, limits):
    """Beside the loop at its best, before and after this very cell, and beside what the loop did
    during the steps: a neighbour on the same cores takes from both."""
    value, wide = rate(results, cell.tokens())
    flops = good(results)[0]["flops_per_token"]
    now = machine(results)
    instruction = limits[0][f"{cell.precision}_gflops_all"] / limits[0]["fp32_gflops_all"]
    best = max([l["fp32_gflops_all"] for l in limits] + ([now] if now else [])) * instruction
    title, said = f"{cell.title()}: share of the limit", f"{number(value)} tokens/s"
    mark = "0.60" if cell.precision == "bf16" else "0.70"
    part.rows.append(Row(title, said + report.spread(wide), "multiply-add loop meanwhile",
                         f"{number(now * instruction)} GFLOP/s" if now else "",
                         shares(results, cell.tokens() * flops / 1e9 / instruction), mark,
                         f"{number(flops / 1e6)} MFLOP a token; {report.turns(good(results))}"))
    part.rows.append(Row(title, said, "the loop at its best", f"{number(best)} GFLOP/s",
                         value * flops / 1e9 / best, "", "" if not now else
                         f"the machine gave {now * instruction / best * 100:.0f} % of that"))


def shares(results, gflops):
    """Of what the processors gave, median over the turns, for a step of so many operations."""
    return median([gflops * len(r["seconds"][1:]) / sum(r["seconds"][1:]) / r["machine"]
                   for r in good(results) if r.get("machine")])


def given(mine, theirs, ratio):
    """A note: what the processors gave to each, and the ratio if that had been the same."""
    a, b = machine(mine), machine(theirs)
    if not a or not b:
        return ""
    return f"machine: {number(a)} and {number(b)} GFLOP/s, by that {number(ratio * b / a)}"


def peer_rows(context, part, cell, results):
    """A row for each form of the peer, the mark at the quickest."""
    tokens, precision, title = cell.tokens(), cell.precision, cell.title()
    mine = rate(results["sifr"], tokens)[0]
    found = []      # (tokens a second, name, row, peak memory)
    for name, runs in results.items():
        if name == "sifr":
            continue
        if not good(runs):
            part.rows.append(Row(f"{title}: tokens/s", "", name, note=failure(runs)))
            continue
        value, wide = rate(runs, tokens)
        emulates = cell.emulated and not name.endswith(FP32)
        wrong = check_losses(good(results["sifr"])[0], good(runs)[0], precision)
        note = "; ".join(t for t in (wrong, "bf16 emulated here" if emulates else "",
                                     report.turns(good(runs)),
                                     given(results["sifr"], runs, mine / value)) if t)
        row = Row(f"{title}: tokens/s", number(mine), name, number(value) + report.spread(wide),
                  mine / value, "", note)
        part.rows.append(row)
        if not wrong:
            found.append((value, name, row, max(r["peak_bytes"] for r in good(runs))))
    if not found:
        return
    best = max(found, key=lambda f: f[0])
    best[2].mark = "1.3" if precision == "bf16" else "1.2"
    peak = max(r["peak_bytes"] for r in good(results["sifr"]))
    part.rows.append(Row(f"{title}: peak memory", gigabytes(peak), best[1], gigabytes(best[3]),
                         peak / best[3], "<0.6"))
    if precision == "fp32":
        context.torch_form[cell.model, cell.shape] = best[1]


@dataclass
class Cell:
    model: str
    precision: str
    shape: tuple        # sequences, length
    emulated: bool      # bf16 without instructions for it
    main: bool          # the shape that all forms are measured at

    def tokens(self):
        return self.shape[0] * self.shape[1]

    def title(self):
        return f"{self.model} {self.precision}, {self.shape[0]} × {self.shape[1]}"


FP32 = ", fp32"     # of a name: torch in fp32 beside sifr in bf16


def peers_of(context, cell):
    """torch as it is and compiled. Where bf16 is emulated its users take fp32, and that is its
    best: the form that was quicker in fp32; bf16 itself is tried on one model."""
    if not context.python:
        return []
    make = lambda precision, compiled, steps, said="": torch(
        context, cell.model, precision, *cell.shape, compiled, steps, said)
    if not cell.emulated:
        return [make(cell.precision, False, 2), make(cell.precision, True, 2)]
    compiled = context.torch_form.get((cell.model, cell.shape)) == "torch, compiled"
    tried = [make("bf16", False, 1)] if cell.main and cell.model == "gpt2" else []
    return [make("fp32", compiled, 2, FP32)] + tried


def weight(context, cell):
    """Of the time for this part."""
    return 1.5 + 2 * len(peers_of(context, cell))


def measure_cell(context, part, cell, budget):
    context.say(f"{cell.title()}, {budget:.0f} s")
    contestants = [ours(context, cell.model, cell.precision, *cell.shape, 3)]
    contestants += peers_of(context, cell)
    limits = [measure(context.inputs, "operations")]
    results = interleave(contestants, context.rounds, budget, context.say, watch(context.inputs))
    limits.append(measure(context.inputs, "operations"))
    part.data[cell.title()] = {"results": results, "limits": limits}
    if not good(results["sifr"]):
        part.rows.append(Row(cell.title(), note=failure(results["sifr"])))
        return
    share_row(part, cell, results["sifr"], limits)
    peer_rows(context, part, cell, results)


def compile_ahead(context, cell):
    """torch.compile keeps what it has made, so the minutes that it takes at the first time are not
    taken from the measurement."""
    sequences, length = cell.shape
    stamp = os.path.join(CACHE, "inductor",
                         f"made-{cell.model}-{cell.precision}-{sequences}x{length}")
    if not context.python or cell.emulated or os.path.exists(stamp):
        return
    context.say(f"torch.compile, {cell.title()}: once, for later runs, too")
    run_once(torch(context, cell.model, cell.precision, *cell.shape, True, 0))  # measures nothing
    os.makedirs(os.path.dirname(stamp), exist_ok=True)
    open(stamp, "w").close()


def same_bits_row(context, part):
    """What the promise of the same bits at any number of ranks costs one that needs it not: sums
    of gradients in a tree, beside those from left to right, in turns in one process."""
    title = "gpt2 bf16, 4 micro batches of 1 × 1024: gradients in a tree"
    context.say(title)
    shape = (1, 32) if context.inputs.tiny else (1, 1024)
    r = run_once(ours(context, "gpt2", "bf16", *shape, 15, "--micro-batches", "4", "--beside", "0",
                      "--sequential", "--seconds", "1e9", "--whole",
                      "10" if context.inputs.tiny else "190"), watch=watch(context.inputs))
    if "failed" in r:
        part.rows.append(Row(title, note=r["failed"]))
        return
    by = turn_ratios(r["by"])
    tokens = 4 * shape[0] * shape[1]
    of = [tokens / median(side["seconds"][1:]) for side in r["by"]]
    part.data["same bits"] = r
    part.rows.append(Row(title, f"{number(of[0])} tokens/s", "from left to right, in turns",
                         number(of[1]), median(by), "0.97",
                         f"median of {len(by)} turns{report.spread(spread(by))}"))


def run(context, part):
    tiny = context.inputs.tiny
    emulated = context.limits_of_operations()["bf16_instruction"] == "none"
    cells = [Cell(model, precision, shape, emulated and precision == "bf16", main)
             for shape, main in (((2, 32) if tiny else (4, 1024), True),
                                 ((1, 64) if tiny else (1, 4096), False))
             for model in ("gpt2", "llama") for precision in ("fp32", "bf16")]
    for cell in cells if not tiny else []:
        compile_ahead(context, cell)
    same_bits_row(context, part)
    ends = time.monotonic() + context.allowed
    for i, cell in enumerate(cells):
        left = ends - time.monotonic()
        measure_cell(context, part, cell,
                     max(30, left * weight(context, cell) /
                         sum(weight(context, c) for c in cells[i:])))
    part.notes.append(
        "All start from the weights that `sifr init` wrote and take the same ids in the same "
        "order; losses differ by at most " + ", ".join(
            f"{first:g} at the first step and {later:g} after it ({precision})"
            for precision, (first, later) in LOSS_BOUNDS.items()) +
        ", relative, or the row says so. PyTorch: autocast in bf16, fused AdamW, its scaled dot "
        "product attention, threads pinned, huge pages, an allocator that gives nothing back; as "
        "it is and compiled on gpt2, elsewhere the quicker of the two. The mark stands at its "
        "quickest form. Memory is the largest resident size of the process. The limit is what the "
        "loop did during the steps that count, looked at ten times a second on each core: where a "
        "neighbour takes part of a core, the loop loses more than products do, so the share is a "
        "little flattered the further the loop stays below its best, which is the row below it.")
    if emulated and context.python:
        part.notes.append("This processor has no instructions for bf16: PyTorch emulates them, "
                          "which is tried once, on gpt2; its best here is fp32, and the marks of "
                          "bf16 stand beside that.")
