# A file that a run writes where its user says (for Prometheus, a trace, a flops profile) replaces
# nothing but a file of its own kind: not data, weights, the config, or a file of the run.
. "$SOURCE/tests/support/small_llama.sh"
llama_model llama 16 1 true
config() { # OUTPUT_FILE
    cat >ds.json <<J
{"train_batch_size": 4, "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}},
 "flops_profiler": {"enabled": true, "profile_step": 1, "output_file": "$1"},
 "sifr": {"seq_length": 16, "max_steps": 3, "logging_steps": 1}}
J
}
refused() { # MESSAGE OPTION…
    sha256sum text llama/* ds.json >before
    train_llama 2 made "${RANKS:-1}" "${@:2}"
    grep -q "^sifr train: $1; name another" err || fail "${*:2}: $(cat err)"
    sha256sum text llama/* ds.json | cmp - before || fail "${*:2}: a file was replaced"
    [ ! -e made ] || fail "${*:2}: a refused run left $(find made)"
}

# --- what is there and is of another kind ---
config flops.txt
ln -s text link
for path in text llama/model.safetensors ds.json link; do
    refused "prometheus_file: $path exists and is no text for Prometheus of sifr's" --prometheus-file "$path"
    refused "trace: $path exists and is no trace of sifr's" --trace "$path"
done
RANKS=2 refused "trace: text exists and is no trace of sifr's" --trace text
for path in text ds.json llama/model.safetensors; do
    config "$path"
    refused "flops_profiler.output_file: $path exists and is no flops profile of sifr's"
done

# --- the run's own, though they are not there yet ---
config flops.txt
for name in summary.json metrics.jsonl model.safetensors config.json tokenizer.json checkpoint-4; do
    refused "prometheus_file: ./made/$name is a file of the run's own, in --output" \
        --prometheus-file "./made/$name"
done
refused "trace: $PWD/made/summary.json is a file of the run's own, in --output" \
    --trace "$PWD/made/summary.json"
for path in made/./metrics.jsonl made/../made/model.safetensors absent/../made//ema \
    "$PWD/made/x/../latest" made/checkpoint-3/a.prom made/./ema/a.prom; do
    refused "prometheus_file: $path is a file of the run's own, in --output" --prometheus-file "$path"
done
monitored() { # KEY PATH
    config flops.txt
    sed "s|^{|{\"$1\": {\"enabled\": true, \"output_path\": \"$2\", \"job_name\": \"j\"},|" ds.json >m.json
    mv m.json ds.json
}
for key in csv_monitor tensorboard; do
    for path in made/checkpoint-3 made/x/../checkpoint-3/ ./made/ema; do
        monitored $key "$path"
        refused "$key.output_path: $PWD/made/[a-z0-9-]*/j is in a folder of the run's own, in --output"
    done
done
monitored csv_monitor made/csv
for name in Train_Samples_lr.csv ./Train_Samples_train_loss.csv; do
    path=made/csv/j/$name
    refused "prometheus_file: $path is a file of csv_monitor" --prometheus-file "$path"
done
config flops.txt
refused "trace: ./x is the file of prometheus_file" --prometheus-file x --trace ./x

# --- a home folder that no shell has written out ---
refused_home() { # KEY OPTION…
    train_llama 2 "$2" 1 "${@:3}"
    grep -q "^sifr train: $1: ~/x: ~ is your home folder in a shell alone" err || fail "$1: $(cat err)"
    [ ! -e '~' ] || fail "$1: a folder ~ was made"
}
refused_home output '~/x'
refused_home prometheus_file made --prometheus-file '~/x'
config '~/x'
refused_home flops_profiler.output_file made
config flops.txt
for key in tensorboard csv_monitor; do
    sed "s|^{|{\"$key\": {\"enabled\": true, \"output_path\": \"~/x\"},|" ds.json >home.json
    refused_home $key.output_path made --config home.json
done

# --- its own kind is replaced, in the output as well ---
: >a.prom
for run in one two; do
    train_llama 0 $run 1 --prometheus-file a.prom --trace t.json
done
grep -q '^sifr_step{run="two"} 3' a.prom || fail "$(cat a.prom)"
grep -q '^-*  *Flops Profiler' flops.txt || fail "$(cat flops.txt)"
train_llama 2 three 1 --prometheus-file t.json
train_llama 2 three 1 --trace a.prom
train_llama 0 three 1 --trace three/trace.json --prometheus-file three/run.prom
[ -s three/trace.json ] && [ -s three/run.prom ] || fail "$(ls three)"
train_llama 0 three 1 --resume --trace three/trace.json --prometheus-file three/run.prom

# --- a run that is refused later leaves the profile of an earlier one ---
cp flops.txt kept
sed -i 's|^{|{"tensorboard": {"enabled": true, "output_path": "tb"},|' ds.json
train_llama 2 four 1 --prometheus-file nowhere/a.prom
[ -z "$(find tb -type f)" ] || fail "a refused run left $(find tb)"
cmp flops.txt kept || fail "the earlier profile is gone"
