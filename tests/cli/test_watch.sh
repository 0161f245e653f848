# `sifr watch`: a run's figures on terminals of three sizes, which change meanwhile; a run that has
# not begun, grows, is cut and replaced, and fails; folders that are hostile; no terminal; a long log
# in bounded memory. The terminal is as before in the end. `sifr train` on a terminal has its loss as
# a chart, and leaves the same files.
# label: full; not under sanitizers (test_screen is there)
# tests/support/watch_reads.py is the terminal.
. "$SOURCE/tests/support/small_llama.sh"
command -v python3 >/dev/null || { echo "no python3 is here, which is the terminal: skipped"; exit 77; }
llama_model llama 48 2 false
cat >ds.json <<'J'
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "sifr": {"seq_length": 32, "logging_steps": 1, "eval_data": "text", "max_eval_windows": 4,
          "eval_steps": 3, "max_steps": 8}}
J
train() {
    "$SIFR" train --config ds.json --model llama --data text --output "$1" --threads 1 "${@:2}"
}
train one >log 2>&1 || fail "$(cat log)"
reads() { python3 "$SOURCE/tests/support/watch_reads.py" "$SIFR" "$@" || fail "$*"; }
reads sizes=one resized=one paused=one growing=new hostile=evil plain=one unread=one

# --- without a terminal: lines, until the run is over ---
expect 0 "$SIFR" watch one
[ "$(wc -l <out)" = 4 ] || fail "three evaluations and a line: $(cat out)"
tail -n 1 out | grep -q '^one  step 8/8  100 %  done  .*loss [0-9.]*  eval loss [0-9.]*' || fail "$(cat out)"
expect 0 "$SIFR" watch one --once
[ "$(wc -l <out)" = 4 ] || fail "$(cat out)"

# A run that is resumed to fewer steps than it has made is over, and no more than whole.
cp -r one fewer
train fewer --resume --max-steps 5 >log 2>&1 || fail "$(cat log)"
grep -q 'nothing left to train: step 8 of 5 is already done' log || fail "$(cat log)"
expect 0 "$SIFR" watch fewer
tail -n 1 out | grep -q '^fewer  step 8/8  100 %  done  ' || fail "$(cat out)"
grep -q '"total_steps": 8' fewer/summary.json || fail "$(cat fewer/summary.json)"

mkdir later
"$SIFR" watch later >lines 2>err &
until grep -q 'no record yet' lines; do sleep 0.05; done
cp one/metrics.jsonl later
cp one/summary.json later
wait $! || fail "$(cat err)"
[ "$(tail -n 1 lines | cut -d ' ' -f 2-)" = "$(tail -n 1 out | sed 's/  saved 8//' | cut -d ' ' -f 2-)" ] ||
    fail "$(cat lines out)"

# Waiting is said, and a folder that goes ends it.
"$SIFR" watch yet >lines 2>err &
until grep -q '^sifr watch: yet: waiting for metrics.jsonl; with --once it ends at once$' err; do sleep 0.05; done
mkdir yet
cp one/metrics.jsonl yet
until grep -q '^yet  step ' lines; do sleep 0.05; done
rm -r yet
code=0
wait $! || code=$?
[ $code = 1 ] && grep -q '^sifr watch: yet: the folder has gone, so there is nothing more to follow' err ||
    fail "the folder has gone: exit code $code $(cat err)"

# A reader that goes ends it, though the run that it follows has nothing new.
mkdir still
head -n 2 one/metrics.jsonl >still/metrics.jsonl
{ timeout 20 "$SIFR" watch still 2>err; echo $? >code; } | head -n 1 >first
[ "$(cat code)" = 0 ] || fail "without a reader: exit code $(cat code) $(cat err)"
grep -q '^still  step ' first || fail "$(cat first err)"

# --- what is refused ---
refused() { # CODE TEXT ARGUMENT…
    expect "$1" "$SIFR" watch "${@:3}"
    [ "$(wc -l <err)" = 1 ] && grep -qF -- "$2" err || fail "watch ${*:3}: $(cat err)"
}
refused 2 'no run is given; name the output folder of one'
refused 2 'several runs are given; name one, or see them side by side with `sifr report`' one one
refused 2 'text: no folder; name the output folder of a run' text
refused 1 'nowhere: no metrics.jsonl yet; name the output folder of a run' nowhere --once
ln -s loop loop
refused 1 'loop: cannot look into the output folder: Too many levels of symbolic links' loop --once
refused 1 'loop: cannot look into the output folder: Too many levels of symbolic links' loop
mkdir circle
ln -s metrics.jsonl circle/metrics.jsonl
refused 1 'circle/metrics.jsonl: cannot open: Too many levels of symbolic links' circle --once
mkdir -p odd/metrics.jsonl
refused 1 'odd/metrics.jsonl: a directory, not a regular file' odd

# --- a long log, as `sifr report` has it ---
mkdir long
awk 'BEGIN { srand(1); for (i = 1; i <= 200000; i++) printf "{\"step\":%d,\"epoch\":%.9g,\"loss\":%.9g,\"grad_norm\":%.9g,\"seconds\":%d}\n", i, i / 1e4, i == 77777 ? 0.5 : 1 + rand(), rand(), i }' >long/metrics.jsonl
(ulimit -v 100000 && exec "$SIFR" watch long --once >out) || fail "a long log takes 100 MB"
grep -q 'step 200000  .*  lowest 0.5000 at 77777' out || fail "$(cat out)"

# --- the live line of a run ---
if command -v script >/dev/null; then
    same() { # OUTPUT: the files that do not have times are those of a run without a terminal
        local file
        for file in model.safetensors sifr_config.json; do
            cmp <(sed 's/"output": "[^"]*"//' one/$file) <(sed 's/"output": "[^"]*"//' "$1/$file") ||
                fail "$1/$file"
        done
        sed 's/"\(tokens_per_second\|seconds\|eval_seconds\|limit_share\|memory_bytes\)":[^,}]*//g' \
            one/metrics.jsonl >want
        sed 's/"\(tokens_per_second\|seconds\|eval_seconds\|limit_share\|memory_bytes\)":[^,}]*//g' \
            "$1/metrics.jsonl" | cmp - want || fail "$1: other records"
    }
    on_terminal() { # OUTPUT VARIABLE…, of $columns
        env "${@:2}" script -qec "stty cols ${columns:-120}; '$SIFR' train --config ds.json --model llama \
            --data text --output $1 --threads 1" /dev/null </dev/null >live 2>&1 || fail "$(cat live)"
        same "$1"
    }
    columns=8 on_terminal narrow TERM=xterm LC_ALL=C.UTF-8
    tr '\r' '\n' <live | sed 's/\x1b\[K//' | grep -qx 'step 8' || fail "in 8 columns: $(cat -v live)"
    on_terminal drawn TERM=xterm LC_ALL=C.UTF-8
    tr '\r' '\n' <live | sed 's/\x1b\[K//' >lines
    LC_ALL=C grep -q $'^step 8/8  loss [0-9.]*  \xe2' lines || fail "no chart: $(cat lines)"
    grep -q '^step 8/8 .*  0:00 left$' lines || fail "no time left: $(cat lines)"
    on_terminal ascii TERM=xterm LC_ALL=C
    if LC_ALL=C grep -q $'\xe2' live; then fail "a chart without UTF-8: $(cat live)"; fi
    on_terminal dumb TERM=dumb LC_ALL=C.UTF-8
    if LC_ALL=C grep -q $'\x1b\|\xe2' live; then fail "TERM=dumb: $(cat live)"; fi
    grep -q '^step 8/8 ' live || fail "TERM=dumb: no lines: $(cat live)"
fi
