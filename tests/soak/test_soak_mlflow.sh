# label: soak
# timeout: 600, not under sanitizers
# Runs on MLflow's real servers, from PyPI, on SQLite with one worker: the oldest and the newest that
# are supported. A run live with its files, one sent later and twice, one that resumes with another
# parameter, numbers that JSON has not, more than a call takes, one that was deleted there; read by
# MLflow's own client (mlflow_read.py). Skipped where pip cannot get the packages.
. "$SOURCE/tests/support/small_llama.sh"
versions="3.13.0 3.17.2"
pids=
trap 'kill $pids 2>/dev/null || :' EXIT
export MLFLOW_DISABLE_TELEMETRY=true DO_NOT_TRACK=true no_proxy=127.0.0.1
unset MLFLOW_TRACKING_URI MLFLOW_EXPERIMENT_NAME MLFLOW_EXPERIMENT_ID MLFLOW_RUN_ID
install() { # VERSION: by uv, since pip takes minutes
    "$BUILD/mlflow-$1/bin/mlflow" --version >/dev/null 2>&1 && return
    { python3 -m venv "$BUILD/mlflow-$1" && "$BUILD/mlflow-$1/bin/pip" install uv &&
        "$BUILD/mlflow-$1/bin/uv" pip install --python "$BUILD/mlflow-$1/bin/python" mlflow==$1; } >pip.log 2>&1 ||
        { tail -n 3 pip.log; echo "no MLflow $1 from PyPI: skipped"; exit 77; }
}
port=$((20000 + $$ % 20000))
for version in $versions; do
    install $version
    mkdir server-$version
    port=$((port + 1))
    (cd server-$version && exec "$BUILD/mlflow-$version/bin/mlflow" server --host 127.0.0.1 \
        --port $port --backend-store-uri sqlite:///mlflow.db --artifacts-destination ./files \
        --workers 1 >log 2>&1) &
    pids="$pids $!"
done
llama_model llama 16 1 true
config() { # WINDOWS
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}},
 "sifr": {"seq_length": 16, "max_steps": 6, "logging_steps": 2, "save_steps": 4, "eval_data": "text",
          "max_eval_windows": $1, "mlflow": true}}
J
}
push() { expect 0 "$SIFR" log push "$1" --to $uri; }
warned() { grep -q "$1" err || fail "not warned of: $1: $(cat err)"; }
numbers() { # a spool
    python3 - <<'P'
import json
line = lambda **members: print(json.dumps(members))
line(spool=1, run="0123456789abcdef" * 2, name="numbers", time=1000, experiment=None)
line(parameters={f"p{i}": "x" * 300 for i in range(248)} |
     {"p248": "x" * 7000, "../e": "é" * 6000, "n": "3"})
for i in range(700):
    line(step=i, time=2000 + i, metrics={"loss": i / 7, "i": "-Infinity"} |
         ({} if i % 50 else {"a b/%": "NaN"}))
line(step=1, time=1, metrics={f"m{i}": "Infinity" for i in range(2500)})
line(end="FINISHED", time=9000)
P
}
port=$((20000 + $$ % 20000))
for version in $versions; do
    port=$((port + 1))
    uri=http://127.0.0.1:$port
    python3 - $uri <<'P' || { tail -n 20 server-$version/log; fail "MLflow $version does not start"; }
import sys, time, urllib.request
for _ in range(240):
    try:
        sys.exit(urllib.request.urlopen(sys.argv[1] + "/health").status != 200)
    except OSError:
        time.sleep(0.5)
sys.exit(1)
P
    rm -rf runs
    mkdir runs
    config 4
    MLFLOW_TRACKING_URI=$uri MLFLOW_EXPERIMENT_NAME="a 'b' é/c" \
        train_llama 0 runs/live 1 --mlflow-artifacts model
    ! grep mlflow err || fail "MLflow $version: a warning"
    train_llama 0 runs/offline 1
    push runs/offline
    push runs/offline
    grep -q 'the server has all' out || fail "sent twice: $(cat out)"
    rm runs/offline/spool.sent.json
    push runs/offline
    MLFLOW_TRACKING_URI=$uri train_llama 0 runs/resumed 2
    rm -rf runs/resumed/checkpoint-6 runs/resumed/model.safetensors
    echo checkpoint-4 >runs/resumed/latest
    config 2
    MLFLOW_TRACKING_URI=$uri train_llama 0 runs/resumed 1 --resume
    warned 'mlflow: the server refuses a value: .*Changing param values is not allowed'
    mkdir runs/numbers
    numbers >runs/numbers/spool.jsonl
    for _ in 1 2; do
        push runs/numbers
        [ ! -s err ] || fail "MLflow $version: $(cat err)"
        rm runs/numbers/spool.sent.json
    done
    cp -r runs/offline runs/again
    sed -i '1s/"run":"[0-9a-f]*","name":"[a-z]*"/"run":"00112233445566778899aabbccddeeff","name":"again"/' runs/again/spool.jsonl
    rm runs/again/spool.sent.json
    push runs/again
    id=$(sed -n 's/.*"run_id": "\(.*\)".*/\1/p' runs/again/spool.sent.json)
    python3 -c "import urllib.request as u; u.urlopen(u.Request('$uri/api/2.0/mlflow/runs/delete', b'{\"run_id\": \"$id\"}', {'Content-Type': 'application/json'}))"
    push runs/again
    "$BUILD/mlflow-$version/bin/python" "$SOURCE/tests/soak/mlflow_read.py" $uri runs 2>log ||
        { tail -n 20 log; fail "MLflow $version has not what was sent"; }
done
