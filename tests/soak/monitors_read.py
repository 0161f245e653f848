"""Reads what runs wrote for other programs with these programs: monitors_read.py LOGS CSV RUN PORT FILE.

LOGS/NAME has event files and CSV/NAME the CSV files of three runs that learn the same: on one rank,
on two, and resumed at step 8 of 12. RUN is the first one's output. At PORT of this machine, and in FILE, a run that is under
way tells Prometheus of itself."""
import csv
import json
import os
import sys
import time
import urllib.request

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

NAMES = ["ranks-1", "ranks-2", "resumed"]
STEPS, BATCH = 12, 4


def check(holds, what):
    if not holds:
        sys.exit("monitors_read.py: " + what)


def curves_of(folder):
    events = EventAccumulator(folder, size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def check_tensorboard(logs, table, run):
    curves = {name: curves_of(os.path.join(logs, name)) for name in NAMES}
    records = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
    evaluated = [(r["step"] * BATCH, r["eval_loss"]) for r in records if "eval_loss" in r]
    for name in NAMES:
        loss = curves[name]["Train/Samples/train_loss"]
        check([step for step, _ in loss] == [BATCH * (i + 1) for i in range(STEPS)], name + ": steps")
        have = curves[name]["Train/Samples/eval_loss"]
        check(len(have) == len(evaluated) and all(
            a == b and abs(x - y) < 1e-5 for (a, x), (b, y) in zip(have, evaluated)), name + ": eval_loss")
        for tag in "train_loss", "lr", "grad_norm", "eval_loss", "tokens":
            tag = "Train/Samples/" + tag
            check(curves[name][tag] == curves["ranks-1"][tag], f"{name}: {tag} is another curve")
            path = os.path.join(table, name, tag.replace("/", "_") + ".csv")
            with open(path, newline="") as file:
                rows = list(csv.reader(file))
            check(rows[0] == ["step", tag.split("/")[-1]], path + ": header")
            check(all(int(x) == a and abs(float(y) - b) <= 1e-6 * abs(b)
                      for (x, y), (a, b) in zip(rows[1:], curves[name][tag], strict=True)), path)
    print("TensorBoard reads", len(NAMES), "runs of", len(curves["ranks-1"]), "curves")


def check_trackio(logs):
    import trackio
    trackio.import_tf_events(logs, project="sifr")
    from trackio.sqlite_storage import SQLiteStorage
    runs = sorted(SQLiteStorage.get_runs("sifr"))
    check(runs == NAMES, f"Trackio has runs {runs}")
    rows = SQLiteStorage.get_logs("sifr", "ranks-1")
    losses = [row for row in rows if "Train/Samples/train_loss" in row]
    check(len(losses) == STEPS, f"Trackio has {len(losses)} losses")
    print("Trackio has runs", *runs)


def values_of(text):
    from prometheus_client.parser import text_string_to_metric_families
    values = {}
    for family in text_string_to_metric_families(text):
        check(family.type == "gauge" and len(family.samples) == 1, family.name)
        sample = family.samples[0]
        check(sample.labels == {"run": "under-way"}, f"{sample.name}: {sample.labels}")
        values[sample.name] = sample.value
    return values


def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        check(page.headers["Content-Type"].startswith("text/plain; version=0.0.4"), "type of the page")
        return values_of(page.read().decode())


def check_prometheus(port, file):
    for _ in range(300):
        try:
            first = scrape(port)
            if first["sifr_step"] > 20 and "sifr_eval_loss" in first:
                break
        except OSError:
            pass
        time.sleep(0.1)
    time.sleep(1.5)
    then = scrape(port)
    check(then["sifr_step"] > first["sifr_step"], "the page stands still")
    check(then["sifr_samples"] == then["sifr_step"] * BATCH, "samples")
    check(then["sifr_running"] == 1 and then["sifr_total_steps"] == 1000000, "state of the run")
    check(0 < then["sifr_loss"] < 10 and abs(then["sifr_updated"] - time.time()) < 60, "loss, time")
    kept = values_of(open(file).read())
    check(kept.keys() == then.keys(), f"the file has {sorted(kept)}, the page {sorted(then)}")
    print("Prometheus reads", len(then), "metrics")


if __name__ == "__main__":
    check_tensorboard(*sys.argv[1:4])
    check_trackio(sys.argv[1])
    check_prometheus(*sys.argv[4:])
