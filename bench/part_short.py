"""The short form: sifr's figures as shares of this machine's limits, no peers, two minutes. What
falls below the share that was kept for this kind of machine (bench/short.json) is a regression;
seconds are never compared. Where nothing is kept, nothing is compared, and a line says so
(NOTHING_KEPT). The limit is what the machine gave during the very steps (or just before and behind
them, where it is memory): a neighbour takes from both."""
import json
import os
import time

from harness import ROOT, Contestant, ProcessorWatch, median, rates_between
from harness import run as run_once
from harness import turn_ratios
from part_limits import bandwidth, measure, watch
from part_ranks import launcher, pair
from part_train import ours as steps_of
from report import Row, cpu_name, number

KEPT = os.path.join(ROOT, "bench", "short.json")
SECONDS = 105       # no second look at a figure that would end later: two minutes with all else
KEEPING = 3         # what is kept is the median of so many
NOTHING_KEPT = "No figures are kept"    # how the line begins that tests/scripts/test_speed.sh seeks


def kind_of_machine():
    return " ".join(cpu_name()[1]) or "plain"


def limit(context, precision, watched):
    """What the loop does in this precision, where that of the watch, fp32, did `watched`; at its
    best, where the watch saw nothing."""
    limits = context.limits_of_operations()
    return limits[f"{precision}_gflops_all"] / limits["fp32_gflops_all"] * \
        (watched or limits["fp32_gflops_all"])


def step_share(context, model, precision):
    shape = (2, 32) if context.inputs.tiny else (1, 512)
    r = run_once(steps_of(context, model, precision, *shape, 15, "--whole", "10"),
                 watch=watch(context.inputs))
    if "failed" in r:
        return r
    operations = shape[0] * shape[1] * r["flops_per_token"] / 1e9
    steps = len(r["seconds"]) - 1
    given = r.get("machine_steps") or [None] * steps
    return median([operations / (s * free) / limit(context, precision, rate or r.get("machine"))
                   for s, free, rate in zip(r["seconds"][1:], r["free"], given)])


def adam_share(context):
    """Turns with the triad: memory has no watch. The best of each."""
    elements = "1048576" if context.inputs.tiny else "50000000"
    adam = Contestant("adam", [context.inputs.program("bench_adam"), elements, "5"])
    limits, shares = [bandwidth(measure(context.inputs, "triad"))], []
    for _ in range(2):
        r = run_once(adam)
        if "failed" in r:
            return r
        limits.append(bandwidth(measure(context.inputs, "triad")))
        shares.append(r["bytes_bf16"] / min(r["bf16"]) / 1e9 * 2 / sum(limits[-2:]))
    return median(shares)


def attention_share(context, precision):
    length = 128 if context.inputs.tiny else 4096
    with ProcessorWatch(watch(context.inputs)) as watching:
        begun = time.monotonic()
        r = run_once(Contestant("attention", [context.inputs.program("bench_attention"),
                                              str(length), precision, "3"]))
        ended = time.monotonic()
        rates = rates_between(watching.read(), begun, ended)
    if "failed" in r:
        return r
    free = watching.busy.free(begun, ended, r["run_seconds"])
    flops = 3.5 * 4 * length * (length + 1) / 2 * 768
    return flops / (median(r["forward"]) + median(r["backward"])) / 1e9 / \
        (free * limit(context, precision, rates and sum(rates)))


def stage_share(context):
    """Stage 3 beside stage 0, both on two ranks, which take each step with the one and the other:
    the median of the turns."""
    if not launcher(2)[0]:
        return {"failed": "no mpirun here"}
    shape = (1, 32) if context.inputs.tiny else (1, 256)
    r = run_once(pair(context, "gpt2", 3, shape, 28), watch=watch(context.inputs))
    if "failed" in r:
        return r
    return median(turn_ratios(r["by"]))


def figures(context):
    out = {f"{m} {p} step, share of the limit": lambda m=m, p=p: step_share(context, m, p)
           for m in ("gpt2", "llama") for p in ("bf16", "fp32")}
    out["AdamW, share of the triad"] = lambda: adam_share(context)
    for p in ("bf16", "fp32"):
        out[f"attention {p}, share of the limit"] = lambda p=p: attention_share(context, p)
    out["stage 3 beside stage 0, two ranks"] = lambda: stage_share(context)
    return out


def ask_all(context, names, found, ends=None):
    """Asks for each figure of `names`, and adds it to `found` with the time that it took; where it
    was asked for before, the better one counts, and none is asked that would not be over at
    `ends`."""
    for name, ask in names.items():
        before, took = found.get(name, (None, 0))
        if ends and time.monotonic() + took > ends:
            context.say(f"no time for a second look: {name}")
            continue
        context.say(name + (", once more" if before is not None else ""))
        begun = time.monotonic()
        share = ask()
        if before is not None and (isinstance(share, dict) or share < before):
            share = before
        found[name] = (share, time.monotonic() - begun)


def look(context, least):
    """{name: share, or why there is none}: what is too low may be other work on the machine, so it
    is looked at once more when all others are done, while there is time."""
    ends, found = time.monotonic() + SECONDS, {}
    asks = figures(context)
    ask_all(context, asks, found)
    ask_all(context, {name: asks[name] for name, (share, _) in found.items()
                      if not isinstance(share, dict) and share < bound(context, least, name)},
            found, ends)
    return {name: share for name, (share, _) in found.items()}


def bound(context, least, name):
    return least.get(name, 0) * (1 - context.slack)


def keep(context, kept, kind, now):
    """The medians of several looks, this one among them."""
    looks = [now] + [look(context, {}) for _ in range(KEEPING - 1)]
    if any(isinstance(share, dict) for found in looks for share in found.values()):
        return False
    kept[kind] = {name: round(median([found[name] for found in looks]), 3) for name in now}
    with open(KEPT, "w") as f:
        f.write(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return True


def run(context, part):
    """True where nothing has become slower."""
    kept = json.load(open(KEPT)) if os.path.exists(KEPT) else {}
    kind, fell = kind_of_machine(), []
    least = {} if context.inputs.tiny or context.keep else kept.get(kind, {})
    now = look(context, least)
    for name, share in now.items():
        if isinstance(share, dict):
            part.rows.append(Row(name, note=share["failed"]))
            fell.append(name)
            continue
        row = Row(name, number(share), "kept for this kind of machine",
                  number(least[name]) if name in least else "none", share)
        if name in least:
            row.mark = f"{bound(context, least, name):.3f}"
        part.rows.append(row)
        if share < bound(context, least, name):
            fell.append(name)
    part.data = {"kind": kind, "shares": now}
    if context.keep and not context.inputs.tiny and not fell:
        return keep(context, kept, kind, now)
    if not kept.get(kind):
        part.notes.append(f"{NOTHING_KEPT} for a machine with {kind}, so nothing is compared: "
                          "`bench/run short --keep`.")
    for name in fell:
        context.say(f"slower than it was, or not measured: {name}")
    return not fell
