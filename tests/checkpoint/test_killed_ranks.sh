# Ranks save after every step; one of them, or all with their launcher, are killed at some instant,
# and another mesh (a number of ranks, in one pipeline stage or two), at another stage of ZeRO, goes
# on: to the bits of a run that nobody killed. Each instant: test_kill_instants.c.
# label: full; timeout: 600
. "$SOURCE/tests/support/ranks.sh"
run=
trap 'kill -9 $run 2>/dev/null || :; wait || :' EXIT

yes "the cat sat on a mat and saw that dog run over my big red house" | head -2000 >text
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >/dev/null 2>&1
cat >llama.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
 "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 128}
J
"$SIFR" init --config llama.json --tokenizer tok --output llama --seed 3 >/dev/null
# train OUTPUT RANKS STAGE PIPELINE OPTION…: 40 steps of a batch of four, each saved
train() {
    local output=$1 ranks=$2 stage=$3 pipeline=$4
    shift 4
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
 "zero_optimization": {"stage": $stage}, "pipeline": {"stages": $pipeline},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
 "sifr": {"seq_length": 32, "max_steps": 40, "save_steps": 1, "save_total_limit": 2}}
J
    exec "$SIFR" train --config ds.json --model llama --data text --output "$output" \
        --threads 1 --ranks "$ranks" "$@"
}
steps() { (cat killed/metrics.csv 2>/dev/null || :) | wc -l; }

family() { for p in $(pgrep -P "$1"); do echo "$p"; family "$p"; done; }

(train straight 1 0 1) >log 2>err || fail "the run that nobody kills"
midway=0
kill=0
for mesh in "4 3 2" "2 2 1" "4 1 2" "1 0 1" "2 3 2"; do
    kill=$((kill + 1))
    ranks=${mesh%% *}
    begun=$(steps)
    (train killed $mesh --resume) >log 2>err &
    run=$!
    while kill -0 $run 2>/dev/null && [ "$(steps)" -le $((begun + 2)) ]; do sleep 0.02; done
    sleep 0.0$((kill * 37 % 100))
    victims=$run
    if [ $kill = 3 ]; then
        victims="$run $(family $run)"
    elif [ $ranks -gt 1 ]; then
        for p in $(family $run); do [ "$(cat /proc/$p/comm)" = sifr ] && victims=$p; done
    fi
    kill -9 $victims 2>/dev/null || :
    code=0
    wait $run || code=$?
    if [ $code = 0 ]; then # it was quicker
        [ -e killed/model.safetensors ] || fail "killed, and exit code 0"
        break
    fi
    midway=$((midway + 1))
done
[ $midway -ge 3 ] || fail "only $midway runs were killed on their way"
(train killed 2 3 1 --resume) >log 2>err || fail "the last run"
cmp straight/model.safetensors killed/model.safetensors || fail "other bits after $midway kills"
ls killed | grep "tmp-" && fail "something of a killed run is left"
"$SIFR" inspect killed/checkpoint-40 >shown || fail "inspect"
grep -q "^  step  *40$" shown || { cat shown; fail "inspect does not show the checkpoint"; }
