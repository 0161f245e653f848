"""What MLflow's own client finds on a server: mlflow_read.py ADDRESS FOLDER

Asks of the runs that tests/soak/test_soak_mlflow.sh has made of the output folders in FOLDER."""

import json
import math
import sys

import mlflow

address, folder = sys.argv[1:]
client = mlflow.MlflowClient(address)
experiments = {e.name: e.experiment_id for e in client.search_experiments()}
runs = {}
for run in client.search_runs(list(experiments.values())):
    assert run.info.run_name not in runs, f"two runs: {run.info.run_name}"
    runs[run.info.run_name] = run
print("mlflow", mlflow.__version__, sorted(runs), sorted(experiments))


def history(run, key):
    values = [(m.step, m.value, m.timestamp)
              for m in client.get_metric_history(run.info.run_id, key)]
    return sorted(values)


def spool(name):
    with open(f"{folder}/{name}/spool.jsonl") as file:
        return [json.loads(line) for line in file]


def same_curves(name):
    run, wanted = runs[name], {}
    for line in spool(name):
        for key, value in line.get("metrics", {}).items():
            wanted.setdefault(key, set()).add((line["step"], float(value), line["time"]))
    for key, values in wanted.items():
        assert history(run, key) == sorted(values), (name, key, history(run, key), sorted(values))
    assert set(run.data.metrics) == set(wanted), (set(run.data.metrics), set(wanted))
    wanted = {}
    for line in spool(name):
        for key, value in line.get("parameters", {}).items():
            wanted.setdefault(key, value)
    assert run.data.params == wanted, (name, run.data.params, wanted)
    assert run.data.tags["sifr.run"] == spool(name)[0]["run"]
    return len(wanted)


for name in "live", "offline", "resumed":
    run, count = runs[name], same_curves(name)
    assert run.info.status == "FINISHED" and run.info.end_time == spool(name)[-1]["time"], run.info
    assert run.info.start_time == spool(name)[0]["time"], run.info
    print(name, count, "parameters,", len(run.data.metrics), "metrics")
assert runs["live"].info.experiment_id == experiments["a 'b' é/c"]
files = {file.path: file.file_size for file in client.list_artifacts(runs["live"].info.run_id)}
assert {"metrics.jsonl", "sifr_config.json", "model.safetensors", "config.json"} <= set(files), files
got = client.download_artifacts(runs["live"].info.run_id, "model.safetensors")
with open(got, "rb") as file, open(f"{folder}/live/model.safetensors", "rb") as wanted:
    assert file.read() == wanted.read()
assert len(history(runs["resumed"], "loss")) == 4, history(runs["resumed"], "loss")

run = runs["numbers"]
assert len(history(run, "loss")) == 700 and len(run.data.params) == 251
assert len(history(run, "a b/_")) == 14
assert all(math.isnan(value) for _, value, _ in history(run, "a b/_"))
assert history(run, "m2499")[0][1] > 1e308 and history(run, "i")[0][1] < -1e308
assert len(run.data.metrics) == 2503, len(run.data.metrics)
assert len(run.data.params["p248"]) == 6000 - 2
assert runs["again"].info.status == "FINISHED" and len(history(runs["again"], "loss")) == 3
