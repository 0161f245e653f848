# Runs that go to MLflow's server, played (the real ones: tests/soak/test_soak_mlflow.sh): live, later
# from the spool, twice, on ranks, through resumes.
. "$SOURCE/tests/support/mlflow_runs.sh"

# --- offline: the spool is written, one line says how it is sent; the same bits ---
train_llama 0 offline 1
[ "$(grep -c 'MLFLOW_TRACKING_URI is not set.*sifr log push offline --to URI' err)" = 1 ] || fail "$(cat err)"
sed -i 's/"mlflow": true/"mlflow": false/' ds.json
train_llama 0 plain 1
sed -i 's/"mlflow": false/"mlflow": true/' ds.json
[ ! -e plain/spool.jsonl ] || fail "a run that is not asked for has a spool"
cmp offline/model.safetensors plain/model.safetensors
serve away
push 2 offline
said 'MLFLOW_TRACKING_URI is not set'
push 0 offline --to $uri
check away 'len(k["runs"]) == 1 and r["name"] == "offline" and r["states"] == ["RUNNING", "FINISHED"]'
check away '[(s["step"], s["loss"]) for s in steps("offline") if "loss" in s] == [(n, float("%.9g" % v)) for n, v in m("loss")]'
check away 'len(m("eval_loss")) == 1 and m("epoch")[-1][0] == 6 and len(m("epoch")) == 3'
check away 'r["params"]["optimizer.params.lr"] == "0.01" and r["params"]["sifr.max_steps"] == "6"'
check away 'r["tags"]["sifr.run"] == lines("offline")[0]["run"] and r["end_time"] == lines("offline")[-1]["time"]'
# Twice is once, also where it is not known how much the server has.
cp away/server.json once
push 0 offline --to $uri/
said 'the server has all'
rm offline/spool.sent.json
push 0 offline --to $uri
cmp -s once away/server.json || check away 'r["states"] == ["RUNNING", "FINISHED", "FINISHED"]'
check away 'len(k["runs"]) == 1 and len(m("loss")) == 3'

# --- live, on 1 and 2 ranks, in an experiment, with files; a run that resumes goes on ---
serve live
export MLFLOW_TRACKING_URI=$uri MLFLOW_EXPERIMENT_NAME="a 'b' é/c"
train_llama 0 run-1 1 --mlflow-artifacts logs
[ ! -s err ] || ! grep -q mlflow err || fail "$(cat err)"
check live 'k["experiments"]["1"] == "a \u0027b\u0027 é/c" and r["experiment_id"] == "1"'
check live 'r["states"] == ["RUNNING", "FINISHED"] and file("metrics.jsonl") == open("run-1/metrics.jsonl", "rb").read()'
check live '"model.safetensors" not in str(k["files"].keys()) and len(k["files"]) == 4'
train_llama 0 run-2 2 --mlflow-artifacts model
check live 'len(k["runs"]) == 2 and len(m("loss")) == 3 and file("model.safetensors") == open("run-2/model.safetensors", "rb").read()'
rm -rf run-2/checkpoint-6 run-2/model.safetensors
echo checkpoint-4 >run-2/latest
sed -i 's/"max_eval_windows": 4/"max_eval_windows": 2/' ds.json
train_llama 0 run-2 1 --resume
said 'mlflow: the server refuses a value: .*Changing param values is not allowed'
said 'mlflow: the server refused [3-9] values: .*Changing param' # other ranks, other windows
check live 'len(k["runs"]) == 2 and r["states"] == ["RUNNING", "FINISHED", "RUNNING", "FINISHED"]'
check live '[step for step, _ in m("loss")] == [2, 4, 6, 6] and r["params"]["sifr.max_eval_windows"] == "4"'
unset MLFLOW_TRACKING_URI MLFLOW_EXPERIMENT_NAME
