# Training runs as a user makes them: signals, a full disk, wrong input, epochs, text that is odd.
# timeout: 600, each MPI
. "$SOURCE/tests/support/train_runs.sh"

expect 0 $steady --output straight --max-steps 8 # a run that others meet

# --- signals: the step is finished, saved, and said by the exit code ---
for pair in TERM:143 INT:130 HUP:129; do
    $steady --max-steps 400000 --output stopped >log 2>&1 &
    run=$!
    while [ "$( (cat stopped/metrics.csv 2>/dev/null || :) | wc -l)" -lt 6 ]; do sleep 0.01; done
    if [ ${pair%:*} = TERM ]; then # once: the second run waits for 10 s, and the first one computes
        expect 1 $steady --max-steps 400000 --output stopped --resume
        grep -q 'stopped: in use by another sifr train.*; waiting up to 10 s' out err ||
            fail "not said"
        grep -q 'in use by another sifr train; wait' err || fail "two runs in one folder: $(cat err)"
    fi
    kill -s ${pair%:*} $run
    code=0
    wait $run || code=$?
    [ $code = ${pair#*:} ] || fail "SIG${pair%:*}: exit code $code: $(tail -2 log)"
    grep -q "stopped by SIG${pair%:*} after step" log || fail "$(tail -2 log)"
    step=$(sed -n 's/.*after step \([0-9]*\) of.*/\1/p' log)
    [ "$(cat stopped/latest)" = "checkpoint-$step" ] || fail "saved $(cat stopped/latest)"
    rm -r stopped
done

nohup $steady --max-steps 400000 --output stopped >log 2>&1 & # which has SIGHUP ignored
run=$!
while [ "$( (cat stopped/metrics.csv 2>/dev/null || :) | wc -l)" -lt 6 ]; do sleep 0.01; done
kill -s HUP $run
sleep 0.5
kill -s TERM $run || fail "nohup: SIGHUP ended it: $(tail -2 log)"
code=0
wait $run || code=$?
[ $code = 143 ] || fail "nohup: exit code $code: $(tail -2 log)"
rm -r stopped

# --- a lock that is given up within 10 s: as by ranks whose launcher was killed ---
mkdir held-folder
flock held-folder sleep 2 &
sleep 0.3
expect 0 train --model llama --output held-folder --max-steps 1
grep -q 'held-folder: in use by another sifr train.*; waiting up to 10 s' out || fail "$(cat out)"
mkdir meanwhile # what the other run leaves in these seconds counts
cp held-folder/sifr_config.json meanwhile
flock meanwhile sleep 2 &
sleep 0.3
(sleep 0.7 && echo >meanwhile/model.safetensors) &
expect 2 train --model llama --output meanwhile --max-steps 1
grep -q 'meanwhile: holds a trained model' err || fail "$(cat err)"

# --- a full disk: one line, the older checkpoint is whole ---
expect 0 train --model gpt2 --output full --max-steps 5
expect 1 bash -c "ulimit -f 300; exec '$SIFR' train --config ds.json --data books \
    --threads 2 --model gpt2 --output full --max-steps 9 --resume"
[ "$(grep -c . err)" = 1 ] && grep -q 'cannot write: File too large' err || fail "$(cat err)"
! ls -d full/*.tmp-* 2>/dev/null || fail "leftovers of a full disk"
expect 0 train --model gpt2 --output full --max-steps 9 --resume
grep -q 'resumed from checkpoint-5' out || fail "$(cat out)"

# --- wrong input: one line, the exit code, and the output as it was ---
state() { find "$1" -type d -printf '%p\n' -o -printf '%p %s %T@\n' 2>/dev/null | sort; }
refused() { # CODE MESSAGE OUTPUT ARGUMENT…
    local code=$1 message=$2 output=$3 before
    shift 3
    before=$(state "$output")
    expect "$code" "$SIFR" train --output "$output" "$@"
    [ "$(wc -l <err)" = 1 ] || fail "not one line: $(cat err)"
    grep -q -- "$message" err || fail "no '$message' in: $(cat err)"
    [ "$(state "$output")" = "$before" ] || fail "$message: the output changed"
}
run="--config ds.json --data books"
mkdir full-of-else empty
echo mine >full-of-else/notes
echo "the cat sat" >tiny
cp -r llama wrong
refused 2 "not made by\|not part of a run" full-of-else $run --model llama
echo "the cat sat" >x.parquet # by name: it is no text
code=2
if "$SIFR" doctor --json | grep -q '"carquet"'; then code=1; fi
refused $code "^sifr train: .*x.parquet: \(Parquet is not read; convert it\|no Parquet file\)" nowhere \
    --config ds.json --data x.parquet --model llama
[ ! -e nowhere ] || fail "x.parquet: a folder was made"
mkdir claimed
: >claimed/sifr_config.json.tmp-1
: >claimed/sifr_config.jsonx
refused 2 "holds 'sifr_config.jsonx'" claimed $run --model llama
rm claimed/sifr_config.jsonx
expect 0 train --model llama --output claimed --max-steps 1 --isa plain
grep -q "^model: llama.*, plain$" out || fail "the kernels are not those asked for: $(cat out)"
[ ! -e claimed/sifr_config.json.tmp-1 ] || fail "what a killed run left is still there"
expect 2 "$SIFR" plan --config ds.json --model llama --gradient-accumulation-steps 1e6
grep -q gradient_accumulation_steps err || fail "a step without bound: $(cat err)"
expect 0 "$SIFR" plan --config ds.json --model llama --dry-run

# Weights that are not numbers teach nothing: every step is skipped and said, and no model is left.
cp -r llama nan
size=$(stat -c %s nan/model.safetensors)
printf '\000\000\300\177' | dd of=nan/model.safetensors bs=1 seek=$((size - 4)) conv=notrunc status=none
expect 1 train --model nan --output nan-out --max-steps 3
grep -q "all 3 steps were skipped" err || fail "$(cat err)"
[ "$(grep -c 'step . skipped' err)" = 3 ] || fail "each skipped step is said: $(cat err)"
[ ! -e nan-out/model.safetensors ] || fail "a model of nothing was written"
# Nothing of a model folder stays where it could not be made.
expect 1 "$SIFR" init --config llama.json --tokenizer books --output half
[ ! -e half ] || fail "init left a folder"
mkdir half
expect 1 "$SIFR" init --config llama.json --tokenizer books --output half
[ -z "$(ls half)" ] || fail "init left files"
odd=$(printf 'odd\377"x')
expect 0 "$SIFR" init --config llama.json --output "$odd" --json
grep -q '"output": null' out || fail "no JSON: $(cat out)"
expect 2 "$SIFR" inspect "$odd" --json
refused 2 "another --output to start a new run" straight $run --model gpt2
refused 2 "not a folder" text $run --model llama
refused 2 "is the model folder itself" llama $run --model llama
refused 2 "per-device-train-batch-size" new $run --model gpt2 --resume --per-device-train-batch-size 0
refused 1 "nowhere" new $run --model nowhere
refused 1 "empty" new $run --model empty
refused 1 "no-such" new --config ds.json --model llama --data no-such
refused 1 "no-such" empty --config ds.json --model llama --data 'no-such*'
refused 1 "too few for a window of 64" new --config ds.json --model llama --data tiny
refused 1 "too few for a window of 64" new $run --model llama --eval-data tiny
refused 2 "learned positions" new $run --model gpt2 --seq-length 129
refused 2 "max-steps" new $run --model gpt2 --max-step 3x
refused 3 "memory: the run takes" new $run --model gpt2 --per-device-train-batch-size 4000000
refused 3 "memory: the run takes" empty $run --model gpt2 --per-device-train-batch-size 4000000
truncate -s -5 wrong/model.safetensors
refused 1 "model.safetensors" new $run --model wrong
cp llama/model.safetensors wrong/
sed 's/"intermediate_size": 160/"intermediate_size": 96/' llama.json >wrong/config.json
refused 1 "gate_proj\|up_proj\|down_proj" new $run --model wrong
sed 's/"num_hidden_layers": 2/"num_hidden_layers": 3/' llama.json >wrong/config.json
refused 1 "layers.2" new $run --model wrong
sed 's/"num_hidden_layers": 2/"num_hidden_layers": 1/' llama.json >wrong/config.json
expect 0 train --model wrong --output fewer --max-steps 1 # what is left over is said
grep -q 'warning: .* tensors ignored, model.layers.1' err || fail "$(cat err)"
rm -r fewer
sed 's/"vocab_size": 300/"vocab_size": 200/' llama.json >small.json
"$SIFR" init --config small.json --output small >/dev/null # which would refuse this tokenizer
cp tok/tokenizer*.json small/
refused 1 "vocabulary\|200" new $run --model small
[ ! -e new ] || fail "an output was made for wrong input: $(ls new)"
[ -z "$(ls empty)" ] || fail "something was left: $(ls empty)"
# What a run is must not change when it goes on.
for change in "--seed 7:seed" "--seq-length 32:seq_length" "--data held:data" \
    "--per-device-train-batch-size 8:train_batch_size"; do
    refused 2 "made with.*${change#*:}" straight --config ds.json --data books --model gpt2 \
        --resume ${change%:*}
done
refused 2 "parameters\|weights" straight $run --model llama --resume

# What may change is said field by field, in the config's names.
cp -r straight changed
sed 's/"lr": 3e-3/"lr": 1e-3/; s/WarmupCosineLR/WarmupDecayLR/' ds.json >other.json
expect 0 "$SIFR" train --config other.json --data books --threads 2 --model gpt2 --output changed \
    --max-steps 9 --resume
for field in 'optimizer.params.lr 0.003, this run has 0.001:' \
    'scheduler.type "WarmupCosineLR", this run has "WarmupDecayLR":' \
    'scheduler.params.warmup_max_lr nothing, this run has 0.001:'; do
    grep -qF "was made with $field" err || fail "not said: $field: $(cat err)"
done
if grep '[{}]' err; then fail "a whole object is printed"; fi
if grep 'config.json' err; then fail "the model is the same"; fi
if grep -E 'betas|weight_decay' err; then fail "a field is named that is the same"; fi
rm -r changed
cp -r straight changed
cp -r gpt2 edited # the weights are the checkpoint's, the numbers those of the model's folder
sed -i '1s/{/{"layer_norm_epsilon": 0.5, "transformers_version": "0",/' edited/config.json
expect 0 train --model edited --output changed --max-steps 9 --resume
grep -q 'layer_norm_epsilon .* in config.json, edited has 0.5: continuing' err || fail "$(cat err)"
[ "$(grep -c 'in config.json' err)" = 1 ] || fail "another key of the model: $(cat err)"

# --- epochs, what is dropped, and what is only said ---
expect 0 "$SIFR" train --config ds.json --model llama --data held --max-steps -1 \
    --num-train-epochs 2 --output epochs
windows=$(sed -n 's/.* \([0-9]*\) windows of 64/\1/p' out)
dropped=$((windows * 2 % 8))
[ "$(sed -n 's/^step \([0-9]*\)\/.*/\1/p' out | tail -1)" = $((windows * 2 / 8)) ] ||
    fail "$windows windows: $(cat out)"
[ $dropped = 0 ] || grep -q "dropped the last $dropped windows" out || fail "$(cat out)"
printf 'a\377b' >invalid
: >empty-file
expect 0 "$SIFR" train --config ds.json --model llama --data held invalid empty-file \
    --max-steps 2 --output invalid-out
grep -q '1 sequence in 1 document: not valid UTF-8' err || fail "$(cat err)"
grep -q '1 empty file left out' out || fail "$(cat out)"
grep -q 'without a newline at the end' out || fail "$(cat out)"

# Figures that are not finite never reach the weights; a run that goes nowhere ends.
expect 1 train --model llama --output diverged --learning-rate 1e30 --max-steps 300
grep -q '100 steps in a row were skipped' err || fail "$(tail -1 err)"
[ "$(grep -c 'step [0-9]* skipped: .* not finite' err)" = 100 ] || fail "$(head -3 err)"

# Killed while it reads text: the next run takes the folder.
mkdir -p early/data && : >early/data/1.bin.tmp-1
"$SIFR" train --config ds.json --model llama --data held --max-steps 1 --output early-1 >out
cp early-1/sifr_config.json early/
expect 0 "$SIFR" train --config ds.json --model llama --data held --max-steps 1 --output early
[ "$(ls early/data | wc -l)" = 2 ] || fail "leftovers: $(ls early/data)"

expect 0 "$SIFR" train --config ds.json --model llama --data books --output dry --dry-run
grep -q '^optimizer.params.lr = 0.003' out || fail "$(cat out)"
[ ! -e dry ] || fail "--dry-run made the output"
# The user's keys come first, then defaults that are other than DeepSpeed's, the rest on request.
head -n 1 out | grep -q '^train_batch_size = 8 (' || fail "$(cat out)"
if grep -q '^sifr.seed' out; then fail "a default without being asked"; fi
tail -n 1 out | grep -qE '^[0-9]+ more keys are at the default; --dry-run=all lists them$' ||
    fail "$(cat out)"
sed 's/"gradient_clipping": 1.0,//; s/^{/{"bf16": {"enabled": true}, /' ds.json >unclipped.json
expect 0 "$SIFR" train --config unclipped.json --model llama --data books --output dry --dry-run=all
grep -q "^gradient_clipping = 1 (default): .* \[DeepSpeed: default 0, no clipping\]$" out || fail "$(cat out)"
grep -q "^communication_data_type = .* \[DeepSpeed: default the model's type\]$" out || fail "16 bits"
grep -q '^sifr.seed = 42' out || fail "--dry-run=all leaves a default out"
given=$(grep -n '^scheduler.type' out) other=$(grep -n "^Not given, and other than DeepSpeed's" out)
rest=$(grep -n 'more keys are at the default:$' out)
[ "${given%%:*}" -lt "${other%%:*}" ] && [ "${other%%:*}" -lt "${rest%%:*}" ] || fail "the order"
expect 2 "$SIFR" train --config ds.json --dry-run=everything
grep -q 'give --dry-run or --dry-run=all' err || fail "$(cat err)"

# --- the live line fits the terminal ---
if command -v script >/dev/null; then
    for columns in 80 50; do
        LC_ALL=C.UTF-8 script -qec "stty cols $columns; '$SIFR' train --config ds.json --model llama --data books \
            --output live-$columns --max-steps 900000 --num-train-epochs 1" /dev/null \
            </dev/null >live 2>&1 &
        for i in $(seq 600); do grep -q 'step [0-9]*/900000' live && break || sleep 0.1; done
        sleep 1
        kill $!
        wait $! 2>/dev/null || :
        tr '\r' '\n' <live | sed 's/\x1b\[K//g' | grep '^step [0-9]*/900000  loss' >lines ||
            fail "no live line: $(cat live)"
        # The chart has a column for each character of braille, of three bytes.
        LC_ALL=C sed 's/\xe2[\xa0-\xa3]./#/g' lines |
            awk -v limit=$columns 'length($0) >= limit { exit 1 }' || fail "too wide: $(cat lines)"
    done
    if grep -q 'of limit' lines || ! grep -q ' left$' lines; then fail "50 columns: $(cat lines)"; fi
fi

# --- what the first lines say of clipping, weight decay, rates of 0, and whose bits these are ---
expect 0 "$SIFR" train --config unclipped.json --model llama --data books --output said --max-steps 4
grep -q "^gradient_clipping 1: .* the Hugging Face Trainer's default.* DeepSpeed's is 0" out ||
    fail "$(cat out)"
grep -q '^weight_decay 0.01 applies to every trained weight, including norms and biases' out || fail "$(cat out)"
grep -q '^warm-up: the first 2 steps have learning rate 0, as in DeepSpeed' out || fail "$(cat out)"
grep -q '^bits: the same on 1, 2, 4, 8 ... ranks with this micro batch size (4)' out || fail "$(cat out)"
expect 0 "$SIFR" train --config ds.json --model llama --data books --output said-2 --max-steps 1 \
    --gradient-order sequential
grep -q '^bits: reproducible with 1 rank only: gradient_order is sequential' out || fail "$(cat out)"
if grep -q '^gradient_clipping' out; then fail "said of a config that gives it"; fi
sed 's/^{/{"_comment": "mine", /' ds.json >commented.json
expect 0 "$SIFR" train --config commented.json --model llama --data books --output said-3 --max-steps 1
[ "$(grep -c '^ignored because their names begin with _: _comment$' out)" = 1 ] || fail "$(cat out)"

# --- padding that is the end of a text, too: of Llama, not of GPT-2 ---
for kind in llama gpt2; do
    cp -r $kind padded-$kind
    sed '1s/^{/{"pad_token_id": 0, "eos_token_id": 0, /' $kind/config.json >padded-$kind/config.json
    expect 0 train --model padded-$kind --output said-$kind --max-steps 1
    [ "$(cat out err | grep -c '^pad_token_id 0 is also an eos_token_id: as in transformers')" = \
        "$([ $kind = llama ] && echo 1 || echo 0)" ] || fail "$kind: $(cat out err)"
done
