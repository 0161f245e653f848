# Runs that go to MLflow's server, which tests/support/mlflow_played.py plays (the real ones:
# tests/soak/test_soak_mlflow.sh): live, later from the spool, twice, through resumes; and a server
# that is slow, away, refuses, or answers what no server should. In test_asan.
command -v python3 >/dev/null || { echo "skipped: no python3, which plays the server"; exit 77; }
. "$SOURCE/tests/support/small_llama.sh"
. "$SOURCE/tests/support/until_it.sh"
export no_proxy=127.0.0.1
unset MLFLOW_TRACKING_URI MLFLOW_TRACKING_TOKEN MLFLOW_TRACKING_USERNAME MLFLOW_TRACKING_PASSWORD \
    MLFLOW_EXPERIMENT_NAME MLFLOW_EXPERIMENT_ID MLFLOW_RUN_ID
servers=
trap 'kill $servers 2>/dev/null || :' EXIT
serve() { # FOLDER [VARIABLE=VALUE…]: $uri
    mkdir -p $1
    env "${@:2}" python3 "$SOURCE/tests/support/mlflow_played.py" $1 &
    run=$!
    servers="$servers $run"
    until_it test -e $1/port
    uri=http://127.0.0.1:$(cat $1/port)
}
# check FOLDER 'PYTHON': of `k`, what the server keeps, and `r`, its newest run
check() {
    python3 - "$1" "$2" <<'P' || fail "$1: $2"
import base64, json, sys
k = json.load(open(sys.argv[1] + "/server.json"))
r = list(k["runs"].values())[-1] if k["runs"] else {}
m = lambda key: [(row[1], row[2]) for row in r["metrics"] if row[0] == key]
file = lambda name: base64.b64decode(k["files"][r["run_id"] + "/" + name])
steps = lambda run: [json.loads(line) for line in open(run + "/metrics.jsonl")]
lines = lambda run: [json.loads(line) for line in open(run + "/spool.jsonl")]
found = eval(sys.argv[2])
if not found:
    print(json.dumps(k)[:3000], file=sys.stderr)
sys.exit(not found)
P
}
push() { expect "$1" "$SIFR" log push "${@:2}"; }
said() { grep -q "$1" err out || fail "not said: $1: $(cat err)"; }
llama_model llama 16 1 true
cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}},
 "sifr": {"seq_length": 16, "max_steps": 6, "logging_steps": 2, "save_steps": 4, "eval_data": "text",
          "max_eval_windows": 4, "mlflow": true}}
J

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
