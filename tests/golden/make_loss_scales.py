#!/usr/bin/env python3
"""Writes loss_scales.json: what DeepSpeed's own DynamicLossScaler does in runs of steps.

    pip download --no-deps --no-binary :all: deepspeed==0.19.8 && tar xzf deepspeed-0.19.8.tar.gz
    python make_loss_scales.py deepspeed-0.19.8/deepspeed/runtime/fp16/loss_scaler.py

The one file of DeepSpeed is run, on stand-ins for the names that it takes from torch and deepspeed,
so neither needs to be installed. A case has the options, the steps as a text ("." is clean, "x"
overflows) and [step, scale, hysteresis] after each step, from 0, that changed one of them; "ends"
is the step that raises, -1 where none does.
"""
import hashlib
import json
import os
import random
import sys
import types


class Quiet:
    def __getattr__(self, _):
        return lambda *a, **k: None


def load(path):
    def module(name, **names):
        made = types.ModuleType(name)
        made.__dict__.update(names)
        sys.modules[name] = made
        return made

    module("torch", half="half", float16="half")
    comm = module("deepspeed.comm", get_rank=lambda: 0)
    module("deepspeed", comm=comm)
    module("deepspeed.utils", logger=Quiet(), log_dist=lambda *a, **k: None)
    module("deepspeed.runtime")
    module("deepspeed.runtime.config_utils", DeepSpeedConfigObject=object)
    module("deepspeed.runtime.utils", has_inf_or_nan=None)
    loaded = module("loss_scaler")
    with open(path) as file:
        source = file.read()
    exec(compile(source, path, "exec"), loaded.__dict__)
    return loaded, hashlib.sha256(source.encode()).hexdigest()


def run(module, options, steps):
    scaler = module.CreateLossScaler("half", 0, True, {
        "init_scale": options["initial"], "scale_window": options["window"],
        "min_scale": options["least"], "delayed_shift": options["hysteresis"],
        "consecutive_hysteresis": options["consecutive"]})
    trace, now = [], [options["initial"], options["hysteresis"]]
    for step, kind in enumerate(steps):
        try:
            scaler.update_scale(kind == "x")
        except Exception:
            return {**options, "steps": steps, "trace": trace, "ends": step}
        before, now = now, [float(scaler.loss_scale), scaler.cur_hysteresis]
        if now != before:
            trace.append([step] + now)
    return {**options, "steps": steps, "trace": trace, "ends": -1}


def cases():
    draw = random.Random(16)
    yield (2.0**16, 1.0, 1000, 2, False), "." * 1001 + "x" + "." * 5 + "x" * 3 + "." * 1003
    yield (2.0**16, 1.0, 1000, 2, False), "x" * 20
    yield (4.0, 1.0, 3, 1, False), "..x...." + "." * 8 + "xxxxxx"
    yield (8.0, 3.0, 2, 2, False), "xxxxxxxx"
    yield (2.0, 8.0, 2, 1, False), "x.x" + "." * 6
    yield (1.0, 1.0, 1, 3, True), "." * 40 + "xx.xxx.x" + "." * 4
    for initial in (1.0, 256.0, 1000.0, 2.0**40):
        for hysteresis in (1, 2, 5):
            for consecutive in (False, True):
                window = draw.randint(1, 6)
                often = draw.choice((0.1, 0.3, 0.6))
                steps = "".join("x" if draw.random() < often else "." for _ in range(120))
                yield (initial, draw.choice((0.25, 1.0, 128.0)), window, hysteresis,
                       consecutive), steps


def main():
    module, digest = load(sys.argv[1])
    names = ("initial", "least", "window", "hysteresis", "consecutive")
    made = [run(module, dict(zip(names, options)), steps) for options, steps in cases()]
    out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "loss_scales.json")
    with open(out, "w") as file:
        file.write('{"source": "deepspeed 0.19.8 runtime/fp16/loss_scaler.py",\n"sha256": "%s",\n'
                   '"cases": [\n' % digest)
        file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in made))
        file.write("\n]}\n")
    print(f"{len(made)} cases, {sum(case['ends'] >= 0 for case in made)} end early")


if __name__ == "__main__":
    main()
