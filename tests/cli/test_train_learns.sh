# A model learns, and a run that is killed and resumed has the bits of one that goes straight on;
# so has one with other threads, another order of steps, or recomputation.
# timeout: 600, each MPI, not under sanitizers (test_train, test_checkpoint are)
. "$SOURCE/tests/support/train_runs.sh"
# What does not depend on time: step, epoch, loss, norm, rate.
figures() { cut -d, -f1-5 "$1/metrics.csv"; }

# --- a model learns; what is written is a model folder that can be trained further ---
for kind in llama gpt2; do
    for extra in "" --bf16; do
        rm -rf "$kind-out"
        expect 0 train --model $kind --output $kind-out --eval-data held --eval-steps 15 $extra \
            --json
        for want in '"steps": 30' '"eval_loss": [0-9]' '"skipped_steps": 0' '"planned_bytes": [0-9]'
        do
            grep -q "$want" out || fail "$kind $extra: no $want in $(cat out)"
        done
        first=$(sed -n 2p "$kind-out/metrics.csv" | cut -d, -f3)
        last=$(tail -2 "$kind-out/metrics.csv" | head -1 | cut -d, -f3)
        awk "BEGIN { exit !($first > 5.4 && $first < 6 && $last < 3.5) }" ||
            fail "$kind $extra: loss from $first to $last"
        [ "$(grep -c eval_loss "$kind-out/metrics.jsonl")" = 2 ] || fail "$kind: evaluations"
    done
    for file in config.json tokenizer.json tokenizer_config.json; do
        cmp "$kind/$file" "$kind-out/$file"
    done
    for file in sifr_config.json trainer_state.json metrics.jsonl checkpoint-30/manifest.json; do
        [ -s "$kind-out/$file" ] || fail "$kind: no $file"
    done
    [ "$(cat "$kind-out/latest")" = checkpoint-30 ] || fail "latest: $(cat "$kind-out/latest")"
    expect 0 train --model $kind-out --output again --max-steps 2
    [ "$(wc -l <again/metrics.jsonl)" = 2 ] || fail "metrics of the run before were carried along"
    awk -F, 'NR == 2 { exit !($3 < 3.5) }' again/metrics.csv || fail "$kind: did not go on"
    rm -r again
    expect 0 train --model $kind-out --output again --max-steps 1 --eval-data held \
        --max-eval-windows 2 --eval-on-start
    head -n 1 again/metrics.jsonl | grep -q '"step": *0[,}].*eval_loss\|eval_loss.*"step": *0[,}]' ||
        fail "$kind: $(head -n 1 again/metrics.jsonl) before the first step"
    rm -r again
    # The effective config alone repeats the run; the store made of the text is another copy.
    sed "s|\"output\": \"$kind-out\"|\"output\": \"repeat\"|" "$kind-out/sifr_config.json" >once.json
    expect 0 "$SIFR" train --config once.json
    [ "$(bits repeat)" = "$(bits $kind-out)" ] || fail "$kind: the effective config is another run"
    rm -r repeat
done

# --- straight, and killed and resumed: the same bits and figures ---
expect 0 $steady --output straight
[ "$(ls -d straight/checkpoint-* | wc -l)" = 2 ] || fail "save_total_limit: $(ls straight)"
midway=0
for lines in 1 3 5 7 10; do
    $steady --output killed --resume >log 2>&1 &
    run=$!
    while kill -0 $run 2>/dev/null &&
        [ "$( (cat killed/metrics.csv 2>/dev/null || :) | wc -l)" -le $lines ]; do
        sleep 0.003
    done
    kill -9 $run 2>/dev/null && midway=$((midway + 1))
    wait $run 2>/dev/null || :
done
[ $midway -ge 3 ] || fail "only $midway runs were killed on their way"
expect 0 $steady --output killed --resume
[ "$(bits killed)" = "$(bits straight)" ] || fail "killed and resumed: other bits"
[ "$(figures killed)" = "$(figures straight)" ] || fail "killed and resumed: other figures"
! ls -d killed/*.tmp-* 2>/dev/null || fail "leftovers stay"

# A damaged newest checkpoint: the one before it is taken, and said.
rm -f killed/model.safetensors
printf x | dd of=killed/checkpoint-30/state-00001-of-00001.safetensors bs=1 seek=5000 \
    conv=notrunc 2>/dev/null
expect 0 $steady --output killed --resume
grep -q 'checkpoint-30 is damaged.*state-00001.*checksum' err || fail "not said: $(cat err)"
grep -q 'resumed from checkpoint-28' out || fail "$(cat out)"
[ "$(bits killed)" = "$(bits straight)" ] || fail "from an older checkpoint: other bits"

# Threads, the order of a step and recomputation change nothing.
for other in "--threads 2" "--step-order unit" "--recompute unit"; do
    expect 0 $steady --output other $other
    [ "$(bits other)" = "$(bits straight)" ] || fail "$other: other bits"
    rm -r other
done
