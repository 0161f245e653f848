# What cannot be written, and what that is worth: files above `ulimit -f` fail with a line that says
# so, in every command that writes; lines on a standard output that is closed, full or without a
# reader do not fail a run whose model is written, and fail a command whose results they are; a
# damaged cache of tokens that is made again fails nothing.
# timeout: 240, not under sanitizers (the same code runs in tests in C)
. "$SOURCE/tests/support/small_llama.sh"
llama_model llama 16 1 true
cat >ds.json <<'J'
{"train_batch_size": 2, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
 "sifr": {"seq_length": 32, "max_steps": 2}}
J
train() { "$SIFR" train --config ds.json --model llama --data text --output "$@" --threads 1; }
bits() { sha256sum <"$1/model.safetensors"; }
train good >log 2>err || fail "$(cat err)"

# --- standard output ---
ended() { # CODE OUTPUT: a run's, whose model is there and whose lines are lost
    [ "$1" = 0 ] || fail "$2: exit code $1: $(cat err)"
    [ "$(bits "$2")" = "$(bits good)" ] || fail "$2: other weights"
    [ "$(grep -c 'standard output is closed or full' err)" = 1 ] || fail "$2: $(cat err)"
}
for ranks in 1 2; do
    code=0 && train full-$ranks --ranks $ranks >/dev/full 2>err || code=$?
    ended $code full-$ranks
    code=0 && train closed-$ranks --ranks $ranks --json >&- 2>err || code=$?
    ended $code closed-$ranks
    code=0 && { train read-$ranks --ranks $ranks 2>err || echo $? >code; } | read -r line || :
    [ ! -e code ] || fail "read-$ranks: exit code $(cat code): $(cat err)"
    [ "$(bits read-$ranks)" = "$(bits good)" ] || fail "read-$ranks: other weights"
done
grep -q '"loss"' closed-1/metrics.jsonl || fail "closed-1: no metrics"
printed() { # COMMAND…: prints its results
    local code=0
    "$@" >/dev/full 2>err || code=$?
    [ $code = 1 ] && grep -qx 'sifr: standard output: writing failed' err || fail "$*: $code"
    code=0 && "$@" >&- 2>err || code=$?
    [ $code = 1 ] && grep -qx 'sifr: standard output: writing failed' err || fail "$* >&-: $code"
}
printed "$SIFR" inspect llama
printed "$SIFR" plan --config ds.json --model llama
printed "$SIFR" train --config ds.json --model llama --data text --output x --dry-run
printed "$SIFR" tokenize --tokenizer tok --data text --output store

# --- a limit on the size of files ---
limited() { # KIBIBYTES COMMAND…
    local code=0 limit=$1
    shift
    (ulimit -f "$limit" && exec "$@" >out 2>err) || code=$?
    [ $code = 1 ] || fail "$*: exit code $code: $(cat err)"
    grep -q "File too large (\`ulimit -f\`" err || fail "$*: $(cat err)"
    [ "$(grep -c 'File too large' err)" = 1 ] || fail "$*: $(cat err)"
}
limited 4 "$SIFR" init --config llama.json --tokenizer tok --output l-init
limited 4 "$SIFR" tokenize --tokenizer tok --data text --output l-store
limited 1 "$SIFR" tokenizer train --vocab-size 300 --data text --output l-tok
limited 4 "$SIFR" export good l-export
limited 4 "$SIFR" export good l.gguf --format gguf
limited 12 "$SIFR" train --config ds.json --model llama --data text --output l-cache --threads 1
sed 's|"sifr"|"zero_optimization": {"offload_optimizer": {"device": "nvme", "nvme_path": "."}},\n &|' \
    ds.json >swap.json
limited 16 "$SIFR" train --config swap.json --model llama --data text --output l-swap --threads 1
code=0 && (ulimit -f 100 && train l-ranks --ranks 2 >out 2>err) || code=$?
[ $code = 1 ] && grep -q '`ulimit -f` allows files of 100.* only' err || fail "ranks: $code $(cat err)"
for file in l-init/model.safetensors l-store.bin l-export/model.safetensors l.gguf; do
    [ ! -e $file ] || fail "$file: half of it is left"
done

# Records that have no room until the end are counted, and half a line does not stay.
llama_model tiny 8 1 true
head -c 6000 text >few
sed 's|"sifr": {|"tensorboard": {"enabled": true, "output_path": "logs"},\n &"logging_steps": 1, |' \
    ds.json >lost.json
code=0 && (ulimit -f 24 && "$SIFR" train --config lost.json --model tiny --data few --output lost \
    --threads 1 --max-steps 200 >out 2>err) || code=$?
[ $code = 1 ] || fail "lost: $code $(cat err)" # trainer_state.json has no room either
has=$(wc -l <lost/metrics.jsonl)
[ "$has" -lt 200 ] && [ -z "$(tail -c 1 lost/metrics.jsonl | tr -d '\n')" ] || fail "lost: $has records"
grep -q "lost: the last $((200 - has)) records: lost/metrics.jsonl: cannot write: File too large" err ||
    fail "lost: $(cat err)"
grep -q 'tensorboard lacks [0-9]* of 400 records: ' err || fail "lost: $(cat err)"
! grep -q 'metrics.jsonl has them' err || fail "lost: $(cat err)"

# --- a damaged cache ---
store=$(ls good/data/*.bin)
cp $store whole
again() { # what a second run says, in `out`, with the data of the first
    rm -rf good/checkpoint-* good/latest good/model.safetensors
    expect 0 train good
    grep -q "$1" out err || fail "$1: $(cat out err)"
    cmp $store whole || fail "the cache was not made again"
}
again 'from the store of an earlier run'
truncate -s -2 $store
again 'is damaged and is made again'
for id in '\377\376' '\3\0'; do # beyond the vocabulary, and in it
    printf "$id" | dd of=$store bs=1 seek=10 conv=notrunc 2>log
    again 'is damaged and is made again'
done
