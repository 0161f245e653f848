# MLflow's variables as its own client takes them: an experiment by name and by id, a run by id. What
# a machine without libcurl, or with a broken one, says and keeps; https; spools of another version,
# or cut behind what a server has.
. "$SOURCE/tests/support/mlflow_runs.sh"
spool() { # FOLDER [MEMBERS OF THE HEAD]: a run with one loss, as a short one leaves it
    mkdir -p $1
    cat >$1/spool.jsonl <<J
{"spool": 1, "run": "$(printf '%s' $1 | sha256sum | head -c 32)", "name": "$1", "time": 1000${2:-}}
{"step": 1, "time": 2000, "metrics": {"loss": 2.5}}
{"end": "FINISHED", "time": 3000}
J
}
serve server
export MLFLOW_TRACKING_URI=$uri

# --- experiments ---
spool named
MLFLOW_EXPERIMENT_NAME=a push 0 named
check server 'k["experiments"]["1"] == "a" and r["experiment_id"] == "1"'
spool by-id
MLFLOW_EXPERIMENT_ID=1 push 0 by-id
check server 'r["name"] == "by-id" and r["experiment_id"] == "1"'
spool both
MLFLOW_EXPERIMENT_NAME=a MLFLOW_EXPERIMENT_ID=0 push 1 both
said 'MLFLOW_EXPERIMENT_ID is not 1, the id of the experiment that MLFLOW_EXPERIMENT_NAME names'
MLFLOW_EXPERIMENT_NAME=a MLFLOW_EXPERIMENT_ID=1 push 0 both
check server 'r["name"] == "both" and r["experiment_id"] == "1"'
spool nowhere
MLFLOW_EXPERIMENT_ID=99 push 1 nowhere
said 'MLFLOW_EXPERIMENT_ID: there is no experiment 99; set the id of one that is there, or'
MLFLOW_EXPERIMENT_ID='1;x' push 1 nowhere
said 'MLFLOW_EXPERIMENT_ID: no id of an experiment'
spool kept ', "experiment": "kept", "experiment_id": null' # as the environment was when it began
push 0 kept
check server 'k["experiments"][r["experiment_id"]] == "kept"'
spool kept-id ', "experiment": null, "experiment_id": "1"'
push 0 kept-id
check server 'r["name"] == "kept-id" and r["experiment_id"] == "1"'
spool now ', "experiment": "kept"' # what the user says now comes first
MLFLOW_EXPERIMENT_NAME=a push 0 now
check server 'r["name"] == "now" and r["experiment_id"] == "1"'

# --- a run that is there: it goes on, once ---
id=$(python3 -c 'import json; print(list(json.load(open("server/server.json"))["runs"])[-1])')
spool joins
MLFLOW_RUN_ID=$id push 0 joins
check server 'r["run_id"] == "'$id'" and r["states"] == ["RUNNING", "FINISHED", "RUNNING", "FINISHED"]'
check server 'r["tags"]["sifr.run"] == lines("joins")[0]["run"]'
MLFLOW_RUN_ID=$id push 0 joins
said 'the server has all'
check server 'r["states"] == ["RUNNING", "FINISHED", "RUNNING", "FINISHED"]'
MLFLOW_RUN_ID=none push 1 joins
said 'MLFLOW_RUN_ID: no run with this id that is not deleted'

# --- spools of another version, or cut ---
spool later
sed -i '1s/"spool": 1/"spool": 2/' later/spool.jsonl
push 1 later
said 'later/spool.jsonl: a spool of version 2 is not supported (supported: 1); take the sifr that wrote it'
for version in '"1"' null 1.5; do
    spool later
    sed -i "1s/\"spool\": 1/\"spool\": $version/" later/spool.jsonl
    push 1 later
    said 'spool.jsonl: the first line names no run'
done
spool cut
for i in $(seq 50); do echo '{"step": 1, "time": 2000, "metrics": {"loss": 2.5}}'; done >>cut/spool.jsonl
push 0 cut
# A crash of the machine has cut it, and the run has gone on: what has been sent reached beyond.
head -c 180 cut/spool.jsonl >torn
sed '$d' torn >cut/spool.jsonl
for i in $(seq 2 40); do
    echo "{\"step\": $i, \"time\": $((2000 + i)), \"metrics\": {\"loss\": 2.25, \"more\": $i}}"
done >>cut/spool.jsonl
push 0 cut
check server 'r["name"] == "cut" and [step for step, _ in m("more")] == list(range(2, 41))'

# --- without libcurl, and with one that is broken: the run is kept, and sent from elsewhere ---
mkdir none
for name in libcurl.so.4 libcurl-gnutls.so.4 libcurl.so; do echo >none/$name; done
LD_LIBRARY_PATH=$PWD/none MLFLOW_EXPERIMENT_ID=1 MLFLOW_RUN_ID=mine train_llama 0 bare 1
[ "$(grep -c 'mlflow: libcurl cannot be opened (.*; the run is kept in bare/spool.jsonl, which' err)" = 1 ] ||
    fail "$(cat err)"
said '`sifr log push bare --to URI` sends later, with MLFLOW_RUN_ID set as now'
LD_LIBRARY_PATH=$PWD/none push 1 bare
said 'libcurl cannot be opened (.*none/libcurl.so.4: '
if command -v cc >/dev/null; then
    mkdir old
    echo 'int curl_global_init(long flags) { return (int)flags; }' | cc -shared -x c -o old/libcurl.so.4 -
    LD_LIBRARY_PATH=$PWD/old push 1 bare
    said 'libcurl has no curl_easy_init; install a newer one'
fi
push 0 bare
check server 'r["name"] == "bare" and r["experiment_id"] == "1" and len(m("loss")) == 3'

# --- a run that resumes upon a spool that is not its own: said once, and it goes on ---
rm -rf bare/checkpoint-6 bare/model.safetensors
echo checkpoint-4 >bare/latest
sed -i '1s/"spool": *1/"spool": 2/' bare/spool.jsonl
cp bare/spool.jsonl before
train_llama 0 bare 1 --resume
[ "$(grep -c 'mlflow: bare/spool.jsonl: a spool of version 2 is not supported' err)" = 1 ] || fail "$(cat err)"
said 'mlflow lacks \([0-9]*\) of \1 records: '
cmp before bare/spool.jsonl || fail "a spool of another version is written to"

# --- https: of a server without it, and of one whose certificate nobody has vouched for ---
spool safe
push 1 safe --to https://${uri#http://}
[ "$(wc -l <err)" = 1 ] || fail "$(cat err)"
said "https://${uri#http://}: "
if command -v openssl >/dev/null; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 \
        -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out own.pem 2>log || fail "$(cat log)"
    serve tls PLAYED_TLS=own.pem:key.pem
    uri=https://${uri#http://}
    push 1 safe --to $uri
    said "$uri: .*certificate"
    MLFLOW_TRACKING_SERVER_CERT_PATH=own.pem push 0 safe --to $uri
    MLFLOW_TRACKING_INSECURE_TLS=true push 0 safe --to $uri
    check tls 'len(k["runs"]) == 1 and m("loss") == [(1, 2.5)]'
fi
