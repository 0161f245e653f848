# label: full
# sifr bench comm: what it measures and stores, and that the plan reads it.
# not under sanitizers (MPI keeps what it took), timeout: 240
fail() { echo "$1" >&2; cat out err >&2; exit 1; }
expect() { # CODE COMMAND…
    local want=$1 code=0
    shift
    "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] || fail "$*: exit code $code, not $want"
}
if ! "$SIFR" doctor --json | grep -q '"launcher": "'; then
    echo "skipped: no MPI and launcher here"
    exit 77
fi
export XDG_CACHE_HOME=$PWD/cache

expect 2 "$SIFR" bench comm
grep -q 'nobody to exchange with; give --ranks 2' err || fail "one rank is not told what to do"
expect 2 "$SIFR" bench comm --ranks 2 --max-bytes 1
expect 2 "$SIFR" bench nothing

# Without --output: the user's cache, where the plan looks.
expect 0 "$SIFR" bench comm --ranks 2 --max-bytes 64KiB
for what in gather reduce send; do
    [ "$(grep -c "^$what .* us .* us " out)" = 4 ] || fail "$what: not four sizes"
done
grep -q "^stored: $PWD/cache/sifr/comm.json$" out || fail "not where the cache is"

# Beside what the file has already; of its own keys the new values.
echo '{"version": 1, "network_bytes_per_s": 7e8, "host_latency_s": 9}' >known.json
expect 0 "$SIFR" bench comm --ranks 2 --max-bytes 4KiB --output known.json --json
cmp -s out known.json || fail "--json does not print what is stored"
python3 - <<'P' || fail "the stored file"
import json
m = json.load(open("known.json"))
assert m["version"] == 1 and m["network_bytes_per_s"] == 7e8 and "network_latency_s" not in m
assert 0 < m["host_latency_s"] < 1 and m["host_bytes_per_s"] > 0
rows = m["measurements"]
assert [(r["operation"], r["bytes"]) for r in rows] == [
    (o, b) for o in ("gather", "reduce", "send") for b in (1024, 4096)]
for r in rows:
    whole = r["bytes"] if r["operation"] == "send" else r["bytes"] // 2
    assert r["delivered_bytes"] == whole and r["ranks"] == 2 and r["calls"] > 0
    assert r["seconds"] > 0 and r["assumed_s"] > 0
P
# The pricer takes every such file.
cat >config.json <<'J'
{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 300, "n_embd": 64,
 "n_layer": 2, "n_head": 4, "n_positions": 128}
J
mkdir model && mv config.json model
expect 0 "$SIFR" plan --model model --seq-length 64 --world-size 2 --machine known.json

# A file that is something else stays as it is.
echo '{"version": 9}' >other.json
expect 2 "$SIFR" bench comm --ranks 2 --max-bytes 1KiB --output other.json
[ "$(cat other.json)" = '{"version": 9}' ] || fail "another file was overwritten"
expect 1 "$SIFR" bench comm --ranks 2 --max-bytes 1KiB --output /proc/none/x.json
