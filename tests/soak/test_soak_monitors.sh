# label: soak
# timeout: 600, not under sanitizers
# What a run writes for other programs, read by these, from PyPI (monitors_read.py): TensorBoard reads
# the event files (curves, and what a resumed run takes back), which are those of the CSV files;
# Trackio imports them, a run for each folder; the parser of Prometheus' client reads the file and
# the page of a run under way. Skipped where pip cannot get the packages.
. "$SOURCE/tests/support/small_llama.sh"
venv=$BUILD/monitors-soak
if ! "$venv/bin/python" -c 'import prometheus_client, tensorboard, tbparse, trackio' 2>/dev/null; then
    { python3 -m venv "$venv" &&
        "$venv/bin/pip" install tensorboard==2.21.0 "trackio[tensorboard]==0.43.0" \
            prometheus_client==0.26.0; } >pip.log 2>&1 ||
        { tail -n 3 pip.log; echo "no packages from PyPI: skipped"; exit 77; }
fi
llama_model llama 16 1 true
config() { # JOB
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}},
 "csv_monitor": {"enabled": true, "output_path": "csv", "job_name": "$1"},
 "tensorboard": {"enabled": true, "output_path": "logs", "job_name": "$1"},
 "sifr": {"seq_length": 16, "max_steps": 12, "logging_steps": 4, "save_steps": 8, "eval_steps": 4,
          "eval_data": "text", "max_eval_windows": 4}}
J
}
for ranks in 1 2; do
    config ranks-$ranks
    train_llama 0 run-$ranks $ranks
done
cp -r run-1 resumed
cp -r logs/ranks-1 logs/resumed
cp -r csv/ranks-1 csv/resumed
rm -rf resumed/checkpoint-12 resumed/model.safetensors
echo checkpoint-8 >resumed/latest
config resumed
train_llama 0 resumed 1 --resume
export TRACKIO_DIR=$PWD/trackio
sed -i 's/"output_path": "[a-z]*"/"output_path": "elsewhere"/' ds.json
port=$((20000 + $$ % 20000))
"$SIFR" train --config ds.json --model llama --data text --output under-way --threads 1 \
    --max-steps 1000000 --save-total-limit 2 --prometheus-port $port \
    --prometheus-file sifr.prom >under-way.out 2>&1 &
run=$!
trap 'kill $run 2>/dev/null || :' EXIT
"$venv/bin/python" "$SOURCE/tests/soak/monitors_read.py" logs csv run-1 $port sifr.prom 2>log ||
    { tail -n 20 log; fail "what is read is not what was written"; }
# Two signals end it unsaved; it must not write where the folder is removed.
kill -INT $run
kill -INT $run 2>/dev/null || :
wait $run || :
