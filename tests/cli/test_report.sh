# `sifr report`: runs on one rank and on two, whose figures are those of their logs; a run that is
# going on, and one that was resumed; folders that are hostile, and such as hold no run; a long log
# and many runs, in bounded memory and bytes. The page needs no network, and its policy forbids it.
# label: full, not under sanitizers (MPI keeps what it took)
# tests/support/report_reads.py reads the page.
. "$SOURCE/tests/support/small_llama.sh"
command -v python3 >/dev/null || { echo "no python3 is here, which reads the page: skipped"; exit 77; }
llama_model llama 48 2 false
cat >ds.json <<'J'
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "sifr": {"seq_length": 32, "logging_steps": 1, "eval_data": "text", "max_eval_windows": 4,
          "eval_steps": 3, "save_steps": 4}}
J
train() { # OUTPUT RANKS STEPS OPTION…
    expect 0 "$SIFR" train --config ds.json --model llama --data text --output "$1" --ranks "$2" \
        --max-steps "$3" --threads 1 "${@:4}"
}
report() { expect 0 "$SIFR" report "$@"; }
reads() { python3 "$SOURCE/tests/support/report_reads.py" "$@" >text.out || fail "$1: the page is wrong"; }
shows() { grep -qF -- "$1" text.out || { cat text.out; fail "the page does not say: $1"; }; }
at_most() { # PAGE BYTES
    [ "$(wc -c <"$1")" -le "$2" ] || fail "$1 has $(wc -c <"$1") bytes"
}

# --- real runs ---
train one 1 8
train two 2 8 --trace trace.json --json
cp trace.json two/trace.json
python3 - out two/summary.json <<'P' || fail "summary.json is not what --json printed"
import json, sys
printed, kept = (json.load(open(name)) for name in sys.argv[1:])
assert printed["ran"].pop("notices") is not None
assert kept == printed and kept["state"] == "done", (printed, kept)
assert sum(kept["planned_classes"].values()) <= kept["planned_bytes"], kept
assert kept["wire"]["gathered"]["bytes"] == kept["wire"]["gathered"]["planned"] > 0, kept
P
# docs/report.md has its keys, and no others.
keys() { # NAME…: of these files
    python3 -c '
import json, re, sys
page = open(sys.argv[1]).read().split("| key | of | value |\n|---|---|---|\n")[1].split("\n\n")[0]
listed = set(re.findall(r"`(\w+)`", " ".join(row.split("|")[1] for row in page.split("\n"))))
kept = set().union(*(json.load(open(name)) for name in sys.argv[2:]))
assert kept == listed, (kept - listed, listed - kept)' "$SOURCE/docs/report.md" "$@" ||
        fail "docs/report.md: other keys than summary.json"
}
report one --output one.html
reads one.html one
shows "trace.json: not there; give the run --trace"
[ "$(grep -c 'trace.json: not' text.out)" = 1 ] && [ "$(wc -l <err)" = 1 ] || fail "what is not there: $(cat err)"
grep -q '^sifr report: one: not there: plan.json, trace.json; the page says what each is for$' err || fail "$(cat err)"
shows "8 a checkpoint, which is there"
shows "sifr_config.json"
shows "In no record, and so without a chart: loss_scale."
for i in 1 2 3; do cp -r one alike-$i; done
report one alike-* --output alike.html
[ "$(grep -c 'not there: plan.json, trace.json' err)" = 1 ] || fail "said of each run: $(cat err)"
report two --output two.html
reads two.html two
for part in "Wire by operation" "Timeline of step 2" "rank 1, communication" "forward linear" \
    "moments" "measured beyond the program" "gathered" "state done"; do
    shows "$part"
done
expect 0 "$SIFR" plan --config two/sifr_config.json --world-size 2 --json
cp out two/plan.json
report two --output two.html
reads two.html two
shows "By axis of the mesh, planned"
# Of a mesh each axis and operation: what was moved beside what was planned, as summary.json has it.
sed 's/"seq_length"/"shard_size": 2, &/' ds.json >mesh.json
expect 0 "$SIFR" train --config mesh.json --model llama --data text --output mesh --ranks 4 \
    --max-steps 2 --threads 1
report mesh --output mesh.html
reads mesh.html mesh
python3 - mesh/summary.json >rows <<'P'
import json, sys
groups = json.load(open(sys.argv[1]))["wire"]["groups"]
for axis in "shards", "replicas":
    for name in "gathered", "reduced":
        moved = groups[axis][name]
        assert moved["bytes"] == moved["planned"] > 0, moved
        print(f"{axis} {name} {moved['calls']} ")
P
while read -r row; do shows "$row"; done <rows
[ "$(wc -l <rows)" = 4 ] || fail "the wire by axis: $(cat rows)"
report one two --output both.html
reads both.html one two
report two --trace trace.json --output given.html
cmp two.html given.html || fail "a trace that is given by name makes another page"
[ ! -s err ] || fail "nothing is missing: $(cat err)"
# Parts that are there and of no use: each is named once, in the page and on standard error, with why.
broken() { # FILE SAYS
    report torn --output torn.html
    reads torn.html torn
    shows "cannot be used: torn/$1: $2"
    [ "$(grep -c "torn/$1" text.out)" = 1 ] || fail "$1 is named more than once: $(cat text.out)"
    [ "$(grep -c "warning: a file of a run cannot be used: torn/$1: $2" err)" = 1 ] || fail "$1: $(cat err)"
    ! grep -q "not there: .*$1" err || fail "$1 is there: $(cat err)"
    rm -r "torn/$1"
}
cp -r two torn
head -c 100 two/summary.json >torn/summary.json
broken summary.json ""
: >torn/plan.json
broken plan.json ""
echo '[]' >torn/plan.json
broken plan.json "no JSON object"
echo '{"a": 1}' >torn/plan.json
broken plan.json 'JSON, but not what `sifr plan --json` prints'
for text in '{"a": 1, "state": 7, "wire": [1]}' '{"state": "done", "wire": [1]}'; do
    echo "$text" >torn/summary.json
    broken summary.json "JSON, but not what a run writes there"
done
echo '{"a": 1}' >torn/trace.json
broken trace.json "it has no step of sifr"
mkdir torn/trace.json
broken trace.json "a directory, not a regular file"
echo x >torn/sifr_config.json
broken sifr_config.json ""
echo x >torn/checkpoint-8/manifest.json
broken checkpoint-8/manifest.json ""
report torn --output torn.html
grep -q 'not there: summary.json, sifr_config.json, plan.json, trace.json;' err || fail "$(cat err)"
grep -q 'torn/checkpoint-8/manifest.json: is not there' err || fail "$(cat err)"

mkdir noise
printf 'x\n{}\n' >noise/metrics.jsonl
report noise --output noise.html
grep -q 'warning: noise/metrics.jsonl: 2 lines, and none is a record$' err || fail "$(cat err)"

# A byte order mark, which some editors put in front, is no part of the first record.
mkdir marked
{ printf '\xef\xbb\xbf' && cat one/metrics.jsonl; } >marked/metrics.jsonl
report marked --output marked.html
reads marked.html
! grep -q 'are no records' text.out || fail "a byte order mark hides a record: $(cat text.out)"
expect 0 "$SIFR" watch marked --once
! grep -q unreadable out || fail "a byte order mark hides a record: $(cat out)"

# --- summary.json says how a run ended: by itself, by a signal, by an error, by a kill ---
state() { sed -n 's/^  "state": "\(.*\)",$/\1/p' "$1/summary.json" 2>/dev/null; }
begin() { # OUTPUT OPTION…: in the background, until it has a record
    "$SIFR" train --config ds.json --model llama --data text --output "$1" --max-steps 1000000 \
        --threads 1 --save-steps 0 "${@:2}" >begun 2>&1 &
    for i in $(seq 600); do
        [ -s "$1/metrics.jsonl" ] && [ "$(state "$1")" = running ] && return
        sleep 0.05
    done
    fail "no record: $(cat begun)"
}
begin asked
[ "$(state asked)" = running ] || fail "a run that is going on: $(cat asked/summary.json)"
grep -q '"total_steps": 1000000,' asked/summary.json || fail "no total: $(cat asked/summary.json)"
kill -TERM $!
wait $! || :
[ "$(state asked)" = stopped ] || fail "a run that was asked to stop: $(cat asked/summary.json)"
grep -q '^    "rest": [1-9]' asked/summary.json || fail "no memory by class: $(cat asked/summary.json)"
begin asked --resume
kill -KILL $!
wait $! 2>/dev/null || :
grep -q '"measured_classes_why": "the run has not ended"' asked/summary.json || fail "not said why"
[ "$(state asked)" = running ] || fail "an earlier run's summary: $(cat asked/summary.json)"
report asked --output asked.html
reads asked.html asked
shows "state running"
sed 's/"lr": 3e-3/"lr": 1e30/; s/"save_steps": 4/"save_steps": 0/' ds.json >wild.json
expect 1 "$SIFR" train --config wild.json --model llama --data text --output wild --threads 1 \
    --max-steps 300
[ "$(state wild)" = failed ] || fail "a run that diverges: $(cat wild/summary.json)"
grep -q '"error": "100 steps in a row were skipped' wild/summary.json || fail "$(cat wild/summary.json)"
grep -q '"measured_classes_why": "the run failed"' wild/summary.json || fail "not said why"
keys two/summary.json wild/summary.json

# --- a resumed run, and one that is going on ---
cp -r one cut
{ cat one/metrics.jsonl; sed 's/"seconds":[0-9.e-]*/"seconds":0.001/; s/"skipped":0/"skipped":2/
    s/"step":/"step":1/' one/metrics.jsonl | head -n 1; printf '{"step":19,"lo'; } >cut/metrics.jsonl
echo nonsense >>cut/metrics.jsonl
printf '{"step":20,"loss":null}\n{"step":21,"loss' >>cut/metrics.jsonl
report cut --output cut.html
reads cut.html
shows "11 resumed before this record"
shows "11 2 of the steps up to this record skipped"
shows "20 loss is not a finite number"
shows "1 lines of metrics.jsonl are no records"
shows "The last line of metrics.jsonl is half-written"

# --- hostile folders: names, keys and texts are shown ---
evil='<script>document.title="owned"</script><img src=x onerror=alert(1)>'
name='"><svg onload=alert(2)>&amp;'
mkdir "$name"
printf '{"step":1,"%s":1,"loss":1e400}\n{"step":2,"loss":-1e308}\n{"step":3,"loss":1e308}\n{"step":-1}\n[]\n{"step":4,"loss":{"a":1}}\n\xff\xfe{}\n' \
    '<b>key</b>' >"$name/metrics.jsonl"
head -c 200000 /dev/zero | tr '\0' 'x' >>"$name/metrics.jsonl"
printf '\n{"step":5,"loss":2}\n' >>"$name/metrics.jsonl"
python3 - "$evil" "$name" <<'P'
import json, sys
evil, folder = sys.argv[1:]
json.dump({"sifr": {evil: evil}, "a": "</pre></script>"}, open(folder + "/sifr_config.json", "w"))
json.dump({"model_type": evil}, open(folder + "/config.json", "w"))
json.dump({"state": evil, "ran": {evil: evil}, "planned_classes": {evil: 1}, "signal": [], "wire": {
    evil: {"calls": 3}, "groups": {evil: {"<i>op</i>": {"calls": 2, "bytes": -1, "planned": "x",
                                                       "crossed": 1e300}, "n": [1]}, "m": 7}}},
          open(folder + "/summary.json", "w"))
json.dump({"mesh": {evil: {"ranks": "x", "gathered_bytes": []}}}, open(folder + "/plan.json", "w"))
with open(folder + "/trace.json", "w") as f:
    f.write('{"traceEvents":[\n')
    for name, cat in (("step 1", "step"), (evil, evil), ("forward x y", "forward")):
        f.write(json.dumps({"name": name, "cat": cat, "ph": "X", "pid": 0, "tid": 0, "ts": 0,
                            "dur": 5, "args": {"step": 1, "unit": evil}}) + ",\n")
    f.write('{"ph":"M","name":"thread_name","pid":0,"tid":0,"args":{"name":"<i>"}},\nhalf')
P
ln -s /etc/passwd "$name/checkpoint-7"
report "$name" --output evil.html
reads evil.html
shows "$evil"
shows "<b>key</b>"
shows "$evil <i>op</i> 2 – – – – "
shows '"><svg onload=alert(2)>&amp; 5 '
! grep -q '<img\|<b>\|onload=alert(2)>&amp; *<' evil.html || fail "markup of a folder is in the page"
ln -s "$PWD/ds.json" linked.json
mkdir leak
cp one/metrics.jsonl leak
ln -s "$PWD/ds.json" leak/sifr_config.json
report leak --output leak.html
! grep -q train_micro leak.html || fail "a file outside of the folder is in the page"

# --- what is refused ---
mkdir empty
complains() { grep -qF -- "$1" err || { cat err; fail "no error like: $1"; }; }
refused() { # CODE TEXT ARGUMENT…
    expect "$1" "$SIFR" report "${@:3}"
    [ "$(wc -l <err)" = 1 ] || fail "report ${*:3}: an error is one line"
    complains "$2"
}
refused 2 'no run is given; name the output folder of one'
refused 1 'nowhere: no folder; name the output folder of a run' nowhere
refused 1 'empty/metrics.jsonl' empty
refused 2 '--output one/metrics.jsonl: the file exists and is no page of HTML; name another' one \
    --output one/metrics.jsonl
refused 2 '--trace trace.json: for one run; for several' one two --trace trace.json
refused 2 '--trace none: no such file' one --trace none
refused 1 'nowhere/page.html: cannot create' one --output nowhere/page.html
expect 0 "$SIFR" report one empty nowhere --output some.html
[ "$(grep -c warning err)" = 2 ] || fail "folders that are left out are warned of"
reads some.html one
shows "Folders that could not be read"

# --- a long log, and many runs ---
awk 'BEGIN { srand(1); for (i = 1; i <= 200000; i++) printf "{\"step\":%d,\"epoch\":%.9g,\"loss\":%.9g,\"grad_norm\":%.9g,\"seconds\":%d}\n", i, i / 1e4, i == 77777 ? 99.5 : 1 + rand(), rand(), i }' >long
mkdir long.run
mv long long.run/metrics.jsonl
(ulimit -v 300000 && "$SIFR" report long.run --output long.html >out) || fail "a long log takes 300 MB"
reads long.html
shows "200,000 values by step, up to 512 together"
at_most long.html 300000
shows "highest 99.5 at step 77777"
mkdir many
for i in $(seq 600); do
    mkdir "many/run-$i"
    ln one/metrics.jsonl "many/run-$i/metrics.jsonl"
done
report many/* --output many.html
reads many.html
shows "The first 32 runs are drawn"
shows "The first 8 runs have a section of their own"
shows "many/run-600"
at_most many.html 2500000
