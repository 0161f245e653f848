# Sourced by tests of runs that go to MLflow's server, which mlflow_played.py plays.
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
said() { grep -q "$1" err out || fail "not said: $1: $(cat out err)"; }
llama_model llama 16 1 true
cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}},
 "sifr": {"seq_length": 16, "max_steps": 6, "logging_steps": 2, "save_steps": 4, "eval_data": "text",
          "max_eval_windows": 4, "mlflow": true}}
J
