# csv_monitor, tensorboard and what Prometheus reads, as a user runs them: the same curves on 1 and 2
# ranks and through a resume, the same weights as without; a page while the run trains; a folder that
# cannot be written and a port in use are refused before the output is made.
. "$SOURCE/tests/support/small_llama.sh"
. "$SOURCE/tests/support/until_it.sh"
llama_model llama 16 1 true
config() { # MORE
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}},
 "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 4, "warmup_type": "linear"}}$1,
 "sifr": {"seq_length": 16, "max_steps": 6, "logging_steps": 2, "save_steps": 4, "eval_data": "text",
          "max_eval_windows": 4}}
J
}
monitors() { # FOLDER
    config ", \"csv_monitor\": {\"enabled\": true, \"output_path\": \"$1\", \"job_name\": \"job\"},
  \"tensorboard\": {\"enabled\": true, \"output_path\": \"$1/tb\"}"
}
bits() { sha256sum <"$1/model.safetensors"; }
curves() { # FOLDER
    cat "$1"/job/Train_Samples_{train_loss,lr,grad_norm,eval_loss,eval_perplexity,epoch}.csv
}

config ""
train_llama 0 plain 1
for ranks in 1 2; do
    monitors logs-$ranks
    train_llama 0 run-$ranks $ranks
    [ "$(bits run-$ranks)" = "$(bits plain)" ] || fail "$ranks ranks: other weights than without"
    [ "$(ls logs-$ranks/tb/DeepSpeedJobName | grep -c '^events.out.tfevents')" = 1 ] ||
        fail "$ranks ranks: $(ls logs-$ranks/tb/DeepSpeedJobName)"
done
curves logs-1 >one
curves logs-2 | cmp - one || fail "2 ranks: other curves"
# x is in samples, lr is that of the next step, a line each step; a record has its own.
printf 'step,lr\r\n4,0.0\r\n8,0.0025\r\n12,0.005\r\n16,0.0075\r\n20,0.01\r\n24,0.01\r\n' |
    cmp - logs-1/job/Train_Samples_lr.csv || fail "lr: $(cat logs-1/job/Train_Samples_lr.csv)"
[ "$(tr -d '\r' <logs-1/job/Train_Samples_tokens.csv | tr '\n' ' ')" = "step,tokens 8,128 16,256 24,384 " ] ||
    fail "tokens: $(cat logs-1/job/Train_Samples_tokens.csv)"
loss=$(sed -n 's/.*"step":6,.*"eval_loss":\([0-9.]\{8\}\).*/\1/p' run-1/metrics.jsonl)
grep -q "^24,$loss" logs-1/job/Train_Samples_eval_loss.csv || fail "eval_loss: not $loss"
grep -aq 'Train/Samples/eval_loss' logs-1/tb/DeepSpeedJobName/* || fail "no eval_loss for TensorBoard"

grep -qx 'tensorboard: files in logs-2/tb/DeepSpeedJobName' out || fail "$(cat out)"
grep -qx 'csv_monitor: files in logs-2/job' out || fail "$(cat out)"

# --- a resume goes on with the curves, and begins an event file of its own ---
monitors logs-1
rm -rf run-1/checkpoint-6 run-1/model.safetensors
echo checkpoint-4 >run-1/latest
train_llama 0 run-1 1 --resume
[ "$(bits run-1)" = "$(bits plain)" ] || fail "resumed: other weights"
curves logs-1 | cmp - one || fail "resumed: other curves"
[ "$(ls logs-1/tb/DeepSpeedJobName | wc -l)" = 2 ] || fail "resumed: no event file of its own"

# --- a job_name that leads out of output_path: as in DeepSpeed, and said ---
outside() { # JOB_NAME SAID FOLDER
    config ", \"csv_monitor\": {\"enabled\": true, \"output_path\": \"in/side\", \"job_name\": \"$1\"}"
    rm -rf job
    train_llama 0 job 1 --max-steps 2
    grep -qx "csv_monitor: files in $2" out || fail "$1: $(cat out)"
    [ -s "$3/Train_Samples_lr.csv" ] || fail "$1: no files in $3"
}
says=', which job_name puts outside of output_path, as DeepSpeed does'
outside ../out "in/side/../out$says" in/out
outside a/../../out2 "in/side/a/../../out2$says" in/out2
outside "$PWD/abs" "$PWD/abs$says" abs
outside ../side/a/.. "in/side/../side/a/..$says" in/side
outside a/./../b in/side/a/./../b in/side/b
outside ..c in/side/..c in/side/..c

# --- what cannot be written ---
for ranks in 1 2; do
    monitors text
    train_llama 2 refused $ranks
    grep -q 'csv_monitor.output_path: text: cannot create the directory: .*; give a folder that can' err ||
        fail "$(cat err)"
    [ ! -e refused ] || fail "a refused run left $(find refused)"
    config ""
    train_llama 2 refused $ranks --prometheus-file ""
    grep -q '^sifr train: prometheus_file is empty: name a file, such as run.prom, or leave it out$' err ||
        fail "$(cat err)"
    train_llama 2 "" $ranks
    grep -q "^sifr train: --output is empty: name the run's folder$" err || fail "$(cat err)"
done

# --- Prometheus: the page of a run under way; another run cannot have its port ---
config ""
port=$((20000 + $$ % 20000))
"$SIFR" train --config ds.json --model llama --data text --output long --threads 1 \
    --max-steps 1000000 --save-total-limit 2 --prometheus-port $port \
    --prometheus-file sifr.prom >long.out 2>&1 &
run=$!
trap 'kill $run 2>/dev/null || :' EXIT
page() {
    exec 3<>/dev/tcp/127.0.0.1/$port || return 1
    printf 'GET /metrics HTTP/1.1\r\n\r\n' >&3
    cat <&3 >page
    exec 3>&-
    grep -q '^sifr_loss{run="long"} ' page
}
until_it page 2>/dev/null
grep -q '^HTTP/1.1 200 OK' page || fail "the page: $(cat page)"
grep -q '^sifr_loss{run="long"} [0-9.]*$' page || fail "the page: $(cat page)"
for ranks in 1 2; do
    train_llama 2 refused $ranks --prometheus-port $port
    grep -q "prometheus_port: 127.0.0.1:$port: Address already in use; give a port that is free" err ||
        fail "$(cat err)"
    [ ! -e refused ] || fail "a refused run left $(find refused)"
done
kill -INT $run
wait $run || :
trap - EXIT
step=$(sed 's/.*-//' long/latest) # where it stopped, which need not have been a step that is logged
grep -qx "sifr_step{run=\"long\"} $step.0" sifr.prom || fail "step $step: $(cat sifr.prom)"
grep -qx 'sifr_running{run="long"} 0.0' sifr.prom || fail "$(cat sifr.prom)"
train_llama 0 two 2 --prometheus-port $port --prometheus-file two.prom
grep -qx 'sifr_step{run="two"} 6.0' two.prom || fail "2 ranks: $(cat two.prom)"
loss=$(sed -n 's/.*"loss": *\([0-9.]\{8\}\).*/\1/p' two/metrics.jsonl | tail -1) # of two steps
grep -q "^sifr_loss{run=\"two\"} ${loss:?}" two.prom || fail "not the record's loss, $loss: $(cat two.prom)"

# --- services that sifr sends nothing to: the run says what brings its files there ---
config ', "wandb": {"enabled": true, "team": "t"}'
train_llama 0 services 1
grep -q '^wandb: sifr sends nothing to Weights & Biases; its package reads metrics.jsonl' out || fail "$(cat out)"
# One that is off is not spoken of, and its login goes nowhere.
config ', "comet": {"enabled": false, "api_key": "sesame"}, "wandb": {"enabled": false}'
train_llama 0 off 1
! grep -qi 'comet\|wandb\|weights & biases' out err || fail "a section that is off: $(cat out err)"
expect 0 "$SIFR" report off --output off.html
! grep -rq sesame off off.html out err || fail "the login is in $(grep -rl sesame off off.html out err)"
