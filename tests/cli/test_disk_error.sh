# A disk that turns out to be full in the middle of a step: the room that a run has reserved is taken
# from it. It ends with one clear line and exit code 1, the last checkpoint goes on to the same bits,
# and the swap directory is gone. The disk is a small tmpfs in a namespace of the test's own.
# label: full; timeout: 200
. "$SOURCE/tests/support/small_disk.sh" 8m
. "$SOURCE/tests/support/disk_runs.sh"
cat >ds.json <<'J'
{"train_batch_size": 2, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
 "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "disk"},
     "offload_param": {"device": "nvme", "nvme_path": "disk"}},
 "sifr": {"seq_length": 32, "logging_steps": 1, "save_steps": 100000}}
J
train() { # OUTPUT STEPS RANKS OPTION...
    "$SIFR" train --config ds.json --model llama --data text --output "$1" --max-steps $2 \
        --ranks $3 --threads 1 "${@:4}" >log 2>err
}
train whole 4 1 || fail "the whole run"

for n in $(ranks_of 1 2); do
    train out-$n 2 1 || fail "the first steps"
    "$SIFR" train --config ds.json --model llama --data text --output out-$n --max-steps 100000 \
        --ranks $n --threads 1 --resume >log 2>err &
    run=$!
    for _ in $(seq 600); do
        [ "$(tail -n +2 out-$n/metrics.csv | wc -l)" -gt 4 ] && break
        kill -0 $run 2>/dev/null || fail "the run ended by itself"
        sleep 0.1
    done
    state=$(ls -d disk/sifr-swap-rank$((n - 1))-*/state)
    dd if=/dev/zero of=disk/filler bs=1024 2>/dev/null || :
    for i in $(seq 100); do # the run and the filler are after the same room
        kill -0 $run 2>/dev/null || break
        fallocate --punch-hole --offset 0 --length 400000 "$state" 2>/dev/null || break
        dd if=/dev/zero of=disk/filler-$i bs=1024 2>/dev/null || :
    done
    code=0
    wait $run || code=$?
    [ $code = 1 ] || fail "$n ranks: exit code $code"
    grep -q "/state: writing at byte [0-9]* failed: No space left on device" err ||
        fail "$n ranks: the reason is not said"
    [ "$(ls disk | grep -v filler || :)" = "" ] || fail "$n ranks: left behind: $(ls disk)"
    rm disk/filler*
    train out-$n 4 $n --resume || fail "$n ranks: the checkpoint does not load"
    cat log err | grep -q "resumed from checkpoint-2" || fail "$n ranks: not from step 2"
    cmp out-$n/model.safetensors whole/model.safetensors || fail "$n ranks: other weights"
done
