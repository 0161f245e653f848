# label: soak
# timeout: 1800, not under sanitizers
# `sifr report` in Debian's chromium (report_browser.py): two real runs and a hostile folder, at two
# widths, in dark mode and print, by keyboard, with axe-core; and ten million steps in 30 s, 256 MiB
# and 5 MiB. Skipped without chromium and chromium-driver, or where pip cannot get selenium.
. "$SOURCE/tests/support/small_llama.sh"
for program in chromium chromedriver; do
    command -v $program >/dev/null || { echo "no $program (Debian: chromium, chromium-driver): skipped"; exit 77; }
done
venv=$BUILD/report-soak
if ! "$venv/bin/python" -c 'import selenium, PIL, axe_playwright_python' 2>/dev/null; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install selenium pillow axe-playwright-python; } >pip.log 2>&1 ||
        { tail -n 3 pip.log; echo "no selenium, pillow or axe-playwright-python from PyPI: skipped"; exit 77; }
fi

# --- ten million steps ---
mkdir long
awk 'BEGIN { srand(1); for (i = 1; i <= 10000000; i++) printf "{\"step\":%d,\"epoch\":%.9g,\"loss\":%.9g,\"grad_norm\":%.9g,\"learning_rate\":%.9g,\"tokens_per_second\":%.9g,\"tokens\":%d,\"memory_bytes\":8890368,\"skipped\":0,\"seconds\":%.9g}\n", i, i / 1e5, 1 + rand(), rand(), 1e-4 * (1 - i / 1e7), 37394.9 + rand(), i * 256, i * 0.01 }' >long/metrics.jsonl
start=$(date +%s%N)
(ulimit -v 262144 && "$SIFR" report long --output long.html >out) || fail "ten million steps take 256 MiB"
took=$((($(date +%s%N) - start) / 1000000))
bytes=$(wc -c <long.html)
start=$(date +%s%N)
(ulimit -v 131072 && exec "$SIFR" watch long --once >out) || fail "ten million steps take 128 MiB to watch"
echo "ten million steps watched: $((($(date +%s%N) - start) / 1000000)) ms: $(cat out)"
grep -q 'step 10000000 ' out || fail "another step"
rm -r long
echo "ten million steps: $took ms, $bytes bytes"
[ $took -le 30000 ] || fail "ten million steps take $took ms"
[ "$bytes" -le 5242880 ] || fail "ten million steps make $bytes bytes"

# --- thousands of runs ---
mkdir many
echo '{"step":1,"loss":2.5,"grad_norm":1,"learning_rate":0.1,"seconds":1}' >one
for i in $(seq 5000); do
    mkdir "many/run-$i"
    ln one "many/run-$i/metrics.jsonl"
done
start=$(date +%s%N)
(ulimit -v 262144 && "$SIFR" report many/* --output many.html >out) || fail "5,000 runs take 256 MiB"
took=$((($(date +%s%N) - start) / 1000000))
bytes=$(wc -c <many.html)
echo "5,000 runs: $took ms, $bytes bytes"
[ $took -le 30000 ] && [ "$bytes" -le 5242880 ] || fail "5,000 runs take $took ms and $bytes bytes"

# --- the browser ---
llama_model llama 48 2 false
cat >ds.json <<'J'
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "sifr": {"seq_length": 32, "logging_steps": 1, "eval_data": "text", "max_eval_windows": 4,
          "eval_steps": 20, "save_steps": 40, "max_steps": 80}}
J
for run in one two; do
    ranks=$([ $run = one ] && echo 1 || echo 2)
    train_llama 0 run-$run "$ranks" --trace run-$run/trace.json
    expect 0 "$SIFR" plan --config run-$run/sifr_config.json --world-size "$ranks" --json
    cp out run-$run/plan.json
    sed -i s/3e-3/1e-2/ ds.json
done
expect 0 "$SIFR" report run-one run-two --output runs.html
evil='<img src=x onerror="document.title=1"><script>document.title="owned"</script><b>'
mkdir "evil<b>"
printf '{"step":1,"loss":2,"%s":1}\n{"step":2,"loss":1e400}\n' '<b>key' >"evil<b>/metrics.jsonl"
python3 - "$evil" <<'P'
import json, sys
json.dump({sys.argv[1]: "</pre></script>" + sys.argv[1]}, open("evil<b>/sifr_config.json", "w"))
json.dump({"model_type": sys.argv[1]}, open("evil<b>/config.json", "w"))
P
expect 0 "$SIFR" report "evil<b>" --output evil.html
"$venv/bin/python" "$SOURCE/tests/soak/report_browser.py" "$BUILD/report-shots" runs.html evil.html
