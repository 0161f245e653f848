# label: full
# bench/run: how contestants are run and summed up, what a page says; then all of sifr's own parts
# with tiny shapes. The peers need their 6 GB and are left out.
# not under sanitizers, timeout: 300
fail() { echo "$1" >&2; exit 1; }
command -v python3 >/dev/null || { echo "skipped: no python3 here"; exit 77; }
export PYTHONPATH=$SOURCE/bench PYTHONDONTWRITEBYTECODE=1 SIFR_BENCH_CACHE=$PWD/cache

python3 - <<'P' || fail "the harness"
import os, time
import json, harness as h, report as r, part_ranks, part_short, part_train

def sh(name, text, **more):
    return h.Contestant(name, ["sh", "-c", text], **more)

# Turns A B A B; a contestant that fails is not asked again, and the others go on.
order = [sh("a", "echo a >>order; echo noise; echo '{\"x\": 1}'"),
         sh("b", "echo b >>order; echo 'ValueError: no' >&2; exit 3"),
         sh("c", "echo c >>order; echo '{\"x\": 3}'")]
here = os.getcwd()
for c in order:
    c.command[2] = f"cd {here}; " + c.command[2]
got = h.interleave(order, 2, 60, lambda text: None)
assert open("order").read().split() == ["a", "b", "c", "a", "c"], open("order").read()
assert [x["x"] for x in got["a"]] == [1, 1] and got["a"][0]["peak_bytes"] > 1e5
assert got["b"][0]["failed"] == "ValueError: no" and not h.good(got["b"])

# A later turn is made whole or not at all: two of 0.2 s each, by a clock that only they move.
class Clock:
    now = 0
    def monotonic(self): return self.now
def takes(contestant, watch):
    h.time.now += 0.2
    return {"wall_seconds": 0.2}
h.time, h.run, kept = Clock(), takes, (h.time, h.run)
for seconds, turns in ((1.21, 3), (1.19, 2), (0.81, 2), (0.79, 1), (0, 1)):
    got = h.interleave(order[::2], 3, seconds, lambda text: None)
    assert [len(got[name]) for name in ("a", "c")] == [turns, turns], (seconds, got)
h.time, h.run = kept

# One that takes too long is ended, with all that it started, and says so.
begun = time.monotonic()
slow = h.run(sh("slow", f"cd {here}; sleep 100 & echo $! >child; wait", timeout=6))
assert "too slow" in slow["failed"] and time.monotonic() - begun < 20, slow
for _ in range(100):
    try:
        with open(f"/proc/{open('child').read().strip()}/stat") as f:
            state = f.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):     # the latter where it goes while read
        state = "gone"
    if state in ("gone", "Z"):
        break
    time.sleep(0.1)
assert state in ("gone", "Z"), state
early = h.run(sh("early", "echo '{\"x\": 1}'; echo '{\"x\":'; sleep 60", timeout=6))
assert early["x"] == 1 and early["ended_early"], early
assert "no JSON" in h.run(sh("dumb", "echo hello"))["failed"]

# Ranks without a launcher of their own: each knows which one it is, the first one answers; one that
# fails ends the others.
ranks = h.run(sh("ranks", "printf '{\"rank\": %d, \"of\": %d}' $RANK $WORLD_SIZE; sleep 1.3",
                 ranks=2))
assert (ranks["rank"], ranks["of"]) == (0, 2) and ranks["peak_bytes"] > 1e5, ranks
begun = time.monotonic()
lost = h.run(sh("lost", "[ $RANK = 0 ] || { echo 'Error: mine' >&2; exit 1; }; sleep 60", ranks=2))
assert lost["failed"] == "Error: mine" and time.monotonic() - begun < 30, lost

# What the processors give meanwhile: the mean of each core over the steps that count, summed.
said = ("import time; now = time.monotonic(); "
        "print(now - 99, 0, 700); print(now, 0, 10); print(now, 1, 20); print(now, 1, 40); "
        "print(now, 0, 3, flush=True); open('said', 'w'); time.sleep(60)")
watched = h.run(sh("watched", f"cd {here}; until [ -e said ]; do sleep 0.1; done; "
                   "python3 -c 'import time; print(\"{\\\"seconds\\\": [9, 30, 30], "
                   "\\\"ended\\\": %f}\" % (time.monotonic() + 0.5))'"),
                watch=["python3", "-c", said])
assert watched["machine"] == 40 and watched["machine_cores"] == [10, 30], watched
assert watched["least"] == [10] and abs(watched["uneven"] - 1 / 3) < 1e-9, watched
assert "machine" not in h.run(sh("none", "echo '{}'"), watch=["true"])

# What other programs took of two cores: 5 of 20 seconds.
busy, cores, h.cores = h.BusyWatch(), h.cores, lambda: [0, 1]
busy.seen = [(100, 7), (105, 12), (110, 22)]
assert busy.free(100, 110, 10) == 0.75 and busy.free(100, 110, 15) == 1, busy.free(100, 110, 10)
h.cores = cores

# Stages in turns: what a step took of the slower core, not seconds alone. Communication: what
# other threads did while the first one stood still does not count twice.
own = {"seconds": [9, 4, 6], "free": [1, 0.5], "least": [100, 50]}
base = {"seconds": [9, 4, 4], "free": [1, 1], "least": [90, 75]}
assert part_ranks.turn_ratios([own, base]) == [0.9, 2], part_ranks.turn_ratios([own, base])
step = {"waiting_seconds": 2, "agreeing_seconds": 1, "beside_seconds": 4, "lost_seconds": 5}
assert part_ranks.communication(step) == 5
assert part_ranks.communication({**step, "lost_seconds": 9}) == 7

# Settings of the shell that slow a library down do not reach a contestant.
os.environ["OPENBLAS_CORETYPE"] = "Haswell"
seen = h.run(sh("env", "echo \"{\\\"v\\\": \\\"$OPENBLAS_CORETYPE\\\"}\""))
assert seen["v"] == "", seen

assert h.median([3, 1, 2]) == 2 and h.spread([1, 2, 3]) == 1.0 and h.spread([1]) is None
assert r.Row("", ratio=0.6, mark="0.60").reached() is True
assert r.Row("", ratio=0.59, mark="0.60").reached() is False
assert r.Row("", ratio=0.61, mark="<0.6").reached() is False
assert r.Row("", mark="0.60").reached() is None
assert "**short**" in "".join(r.table([r.Row("x | y", ratio=0.1, mark="0.5")]))
same = {"losses": [10.0, 9.0]}
assert part_train.check_losses(same, {"losses": [10.0, 9.001]}, "fp32") == ""
assert "step 1" in part_train.check_losses(same, {"losses": [10.001, 9.0]}, "fp32")
assert "step 2" in part_train.check_losses(same, {"losses": [10.0, 9.1]}, "fp32")
assert "step 1" in part_train.check_losses(same, {"losses": [float("nan")]}, "fp32")

# A peer that failed, or trained something else, is counted as not measured.
cell = part_train.Cell("gpt2", (1, 10), False)
ok = {"seconds": [9, 1], "losses": [10, 9], "peak_bytes": 1, "flops_per_token": 1}
found = {"sifr fp32": [ok], "torch fp32": [{**ok, "seconds": [9, 2]}],
         "torch fp32, compiled": [{**ok, "losses": [10, 9.5]}], "torch bf16": [ok]}
part = r.Part("train", "")
part_train.peer_rows(part, cell, "fp32", found)
assert [(row.beside, row.ratio, row.mark) for row in part.rows] == [
    ("torch fp32", 2, "1.2"), ("torch fp32, compiled", None, "1.2"), ("torch fp32", 1, "<0.6")]
found["torch fp32, compiled"] = [{"failed": "no"}]
cell.emulated, part = True, r.Part("train", "")     # bf16 is emulated: beside fp32, too
part_train.peer_rows(part, cell, "bf16", {**found, "sifr bf16": [{**ok, "seconds": [9, 4]}]})
assert [(row.beside, row.ratio, row.mark) for row in part.rows] == [
    ("torch fp32", 0.5, ""), ("torch fp32, compiled", None, "1.3"), ("torch bf16", 0.25, "1.3"),
    ("torch bf16", 1, "<0.6")], part.rows
assert r.summary([part]) == "Marks: 0 reached, 2 short, 1 not measured.", r.summary([part])
part = r.Part("ranks", "")
names = {"sifr, stage 3, fp32": [ok], "FSDP2, stage 3": [{**ok, "losses": [11, 9]}]}
part_ranks.peer_rows(part, "gpt2", "FSDP2", 3, "fp32", names, 10)
assert [(row.ratio, row.mark) for row in part.rows] == [(None, "2")] and "step 1" in \
    part.rows[0].note

# What is stored: the rows, a line each. What lies beneath them goes to the cache.
part = r.Part("x", "X", rows=[r.Row("a", ratio=1.0, mark="0.5"), r.Row("b")], data={"runs": [1, 2]})
here = {"begun": "", "commit": "", "sifr": "", "processor": "", "instructions": [], "cores": 1,
        "memory_bytes": 1, "kernel": "", "huge_pages": "", "compiler": "", "mpi": "", "python": ""}
r.write("./stored", here, [part], "bench/run")
stored, raw = json.load(open("stored.json")), json.load(open(r.CACHE + "/stored-raw.json"))
assert "data" not in stored["parts"][0] and raw["parts"][0]["data"] == {"runs": [1, 2]}
assert [row["reached"] for row in stored["parts"][0]["rows"]] == [True, None]
assert len(open("stored.json").read().splitlines()) == 6, open("stored.json").read()

# The short form: what falls below the kept share by more than the tolerance fails, after a second
# look; where nothing is kept of a machine, nothing is compared, and a line says so.
class Inputs: tiny = False
class Context:
    inputs, keep, slack = Inputs, False, 0.1
    def say(self, text): pass
shares = {"x": [0.5, 0.5], "y": [0.9]}
part_short.figures = lambda context: {n: (lambda n=n: shares[n].pop(0)) for n in list(shares)}
part_short.kind_of_machine = lambda: "this"
part_short.KEPT = "kept.json"
open("kept.json", "w").write('{"this": {"x": 0.6, "y": 0.95}}')
part = r.Part("short", "")
assert part_short.run(Context(), part) is False
assert [row.reached() for row in part.rows] == [False, True] and shares["x"] == []
shares, part = {"x": [0.5, 0.58], "y": [0.9]}, r.Part("short", "")
assert part_short.run(Context(), part) is True and not part.notes, part.notes
shares = {"x": [{"failed": "no"}]}
assert part_short.run(Context(), r.Part("short", "")) is False
shares = {"x": [0.5], "y": [0.9]}        # no second look beyond the time that there is
part_short.SECONDS = 0
assert part_short.run(Context(), r.Part("short", "")) is False and shares["x"] == []
open("kept.json", "w").write('{"other": {"x": 0.6}}')
shares, part = {"x": [0.1]}, r.Part("short", "")
assert part_short.run(Context(), part) is True and part.rows[0].reached() is None
assert part.notes[0].startswith("No figures are kept for a machine with this"), part.notes
open("note", "w").write(part.notes[0] + "\n")
shares, Context.keep = {"x": [0.1, 0.3, 0.2]}, True     # what is kept is a median
assert part_short.run(Context(), r.Part("short", "")) is True
assert json.load(open("kept.json")) == {"other": {"x": 0.6}, "this": {"x": 0.2}}
P

# test_speed.sh there is skipped; where figures are kept, it passes or fails as the bench does.
mkdir -p speed/bench
speed() {    # speed CODE FILE: of a bench that says what FILE does and ends so
    printf '#!/bin/sh\ncat "%s"\nexit %d\n' "$PWD/$2" "$1" >speed/bench/run
    chmod +x speed/bench/run
    code=0
    (cd speed && SOURCE=$PWD bash -eu "$OLDPWD/test_speed") >said 2>&1 || code=$?
}
cp "$SOURCE/tests/scripts/test_speed.sh" test_speed
speed 0 note
[ "$code" = 77 ] && tail -n 1 said | grep -q '^skipped: ' || fail "nothing kept: exit code $code"
echo "| x | 0.6 |" >table
speed 0 table
[ "$code" = 0 ] || fail "as quick as it was: exit code $code"
speed 1 table
[ "$code" = 1 ] || fail "slower: exit code $code"

code=0
"$SOURCE/bench/run" nothing >out 2>&1 || code=$?
[ "$code" = 2 ] || fail "an unknown part: exit code $code"
grep -q 'parts are limits train' out || fail "the parts are not named"

"$SOURCE/bench/run" --tiny --no-peers --rounds 1 --minutes 3 --build "$BUILD" \
    --output "$PWD/result" limits train ranks stages lora comm adam attention start files tokenise \
    generate >out 2>err || { cat out err >&2; fail "tiny shapes"; }
python3 - <<'P' || { cat result.md >&2; fail "what it found"; }
import json
parts = {p["name"]: p for p in json.load(open("result.json"))["parts"]}
assert len(parts) == 12
for name, part in parts.items():
    assert part["rows"], name
    for row in part["rows"]:
        assert row["ours"] or row["theirs"], (name, row)    # one without figures says why
assert sum("share of the limit" in r["figure"] for r in parts["train"]["rows"]) == 16
assert [len(parts[p]["rows"]) for p in ("stages", "lora")] == [6, 4]
assert all(r["ours"] for p in ("stages", "lora") for r in parts[p]["rows"])
assert sum(r["figure"].endswith("communication") for r in parts["ranks"]["rows"]) == 8
P
grep -q '^## Training on one rank' result.md || fail "no page"
