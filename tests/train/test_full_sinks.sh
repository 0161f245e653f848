# All sinks on a disk that fills up during the run: each says it once and counts what it lacks, files
# have whole lines, the weights are those of a run without sinks, metrics.jsonl has all. On a disk
# that takes no writes each is refused by its key, before the output is made. The disk is a small
# tmpfs in a namespace of the test's own.
# label: full
. "$SOURCE/tests/support/small_disk.sh" 160k
. "$SOURCE/tests/support/small_llama.sh"
unset MLFLOW_TRACKING_URI
llama_model llama 16 1 true
config() { # CSV TENSORBOARD PROMETHEUS: true or false, and a file or nothing
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}},
 "csv_monitor": {"enabled": $1, "output_path": "disk/csv"},
 "tensorboard": {"enabled": $2, "output_path": "disk/tb"},
 "sifr": {"seq_length": 16, "max_steps": 500, "logging_steps": 1, "mlflow": true
          ${3:+, \"prometheus_file\": \"$3\"}}}
J
}
config false false ""
sed -i 's/, "mlflow": true//' ds.json
train_llama 0 plain 1
config true true disk/run.prom
train_llama 0 full 1
cmp full/model.safetensors plain/model.safetensors || fail "other weights than without sinks"
[ "$(wc -l <full/metrics.jsonl)" = 500 ] || fail "metrics.jsonl: $(wc -l <full/metrics.jsonl) records"
for sink in csv_monitor tensorboard; do
    [ "$(grep -c "$sink: disk/.*: cannot write: No space left on device; the run goes on without these" err)" = 1 ] ||
        fail "$sink: $(cat err)"
    [ "$(grep -c "$sink lacks [0-9]* of 1000 records: disk/.*No space left on device; metrics.jsonl has" err)" = 1 ] ||
        fail "$sink: $(cat err)"
done
grep -q 'prometheus_file: disk/run.prom: cannot write: No space left on device; it still says that' err ||
    fail "prometheus_file: $(cat err)"
grep -q '^sifr_running{run="full"} 1.0$' disk/run.prom || fail "a half-written file: $(cat disk/run.prom)"
for file in disk/csv/DeepSpeedJobName/*.csv; do
    [ "$(tail -c 1 "$file" | od -An -tx1)" = " 0a" ] || fail "$file: a torn line"
done

mount -o remount,ro disk
refused() { # KEY CSV TENSORBOARD PROMETHEUS
    config "${@:2}"
    train_llama 2 refused 1
    grep -q "^sifr train: $1: disk/.*: Read-only file system; give a " err || fail "$1: $(cat err)"
    [ ! -e refused ] || fail "$1: a refused run left $(find refused)"
}
refused csv_monitor.output_path true false ""
refused tensorboard.output_path false true ""
refused prometheus_file false false disk/run.prom
