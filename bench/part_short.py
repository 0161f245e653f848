"""The short form: sifr's figures as shares of this machine's limits, no peers, two minutes. What
falls below the share that was kept for this kind of machine (bench/short.json) is a regression;
seconds are never compared."""
import json
import os

from harness import ROOT, Contestant, good, median, run as run_once
from part_limits import bandwidth, measure
from part_ranks import launcher, ours as stage_of
from part_train import ours as steps_of
from report import Row, cpu_name, number

KEPT = os.path.join(ROOT, "bench", "short.json")


def kind_of_machine():
    return " ".join(cpu_name()[1]) or "plain"


def step_share(context, model, precision):
    shape = (2, 32) if context.inputs.tiny else (1, 1024)
    before = measure(context.inputs, "operations")
    r = run_once(steps_of(context, model, precision, *shape, 2))
    after = measure(context.inputs, "operations")
    if "failed" in r:
        return r
    limit = (before[f"{precision}_gflops_all"] + after[f"{precision}_gflops_all"]) / 2
    return shape[0] * shape[1] * r["flops_per_token"] / median(r["seconds"][1:]) / 1e9 / limit


def adam_share(context):
    limit = bandwidth(measure(context.inputs, "memory"))
    elements = "1048576" if context.inputs.tiny else "50000000"
    r = run_once(Contestant("adam", [context.inputs.program("bench_adam"), elements, "5"]))
    return r if "failed" in r else r["bytes_bf16"] / median(r["bf16"]) / 1e9 / limit


def attention_share(context, precision):
    length = 128 if context.inputs.tiny else 4096
    limit = measure(context.inputs, "operations")[f"{precision}_gflops_all"]
    r = run_once(Contestant("attention", [context.inputs.program("bench_attention"), str(length),
                                          precision, "3"]))
    if "failed" in r:
        return r
    flops = 3.5 * 4 * length * (length + 1) / 2 * 768
    return flops / (median(r["forward"]) + median(r["backward"])) / 1e9 / limit


def stage_share(context):
    """Stage 3 beside stage 0, both on two ranks."""
    if not launcher(2)[0]:
        return {"failed": "no mpirun here"}
    shape, rates = (1, 32) if context.inputs.tiny else (1, 1024), []
    for stage in (0, 3):
        r = run_once(stage_of(context, "gpt2", stage, shape, 2))
        if "failed" in r:
            return r
        rates.append(1 / median(r["seconds"][1:]))
    return rates[1] / rates[0]


def figures(context):
    out = {f"{m} {p} step, share of the limit": lambda m=m, p=p: step_share(context, m, p)
           for m in ("gpt2", "llama") for p in ("bf16", "fp32")}
    out["AdamW, share of the triad"] = lambda: adam_share(context)
    for p in ("bf16", "fp32"):
        out[f"attention {p}, share of the limit"] = lambda p=p: attention_share(context, p)
    out["stage 3 beside stage 0, two ranks"] = lambda: stage_share(context)
    return out


def run(context, part):
    """True where nothing has become slower."""
    kept = json.load(open(KEPT)) if os.path.exists(KEPT) else {}
    kind, now, fell = kind_of_machine(), {}, []
    least = {} if context.inputs.tiny else kept.get(kind, {})
    for name, ask in figures(context).items():
        context.say(name)
        share = ask()
        if isinstance(share, dict):
            part.rows.append(Row(name, note=share["failed"]))
            fell.append(name)
            continue
        bound = least.get(name, 0) * (1 - context.slack)
        if share < bound:       # other work on the machine? once more, and the better one counts
            again = ask()
            share = max(share, again) if not isinstance(again, dict) else share
        now[name] = share
        row = Row(name, number(share), "kept for this kind of machine",
                  number(least[name]) if name in least else "none", share)
        if name in least:
            row.mark = f"{bound:.3f}"
        part.rows.append(row)
        if share < bound:
            fell.append(name)
    part.data = {"kind": kind, "shares": now}
    if not least:
        part.notes.append(f"No figures are kept for a machine with {kind}: "
                          "`bench/run short --keep`.")
    if context.keep and not fell and not context.inputs.tiny:
        kept[kind] = {name: round(share, 3) for name, share in now.items()}
        with open(KEPT, "w") as f:
            f.write(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    for name in fell:
        context.say(f"slower than it was, or not measured: {name}")
    return not fell
