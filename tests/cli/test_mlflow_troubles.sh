# MLflow's server, played, that is away, refuses, or answers what no server should; logins, which
# nothing shows or keeps; spools that are torn or hostile. No run ends by any of it.
. "$SOURCE/tests/support/mlflow_runs.sh"
train_llama 0 run 1
serve server
again() { rm -f server/mood run/spool.sent.json; }

push 1 run/spool.jsonl --to $uri
said '^sifr log push: run/spool.jsonl: a file; name the run.s output folder$'

# --- a server that is wrong: said in one line that can be shown; then all is sent ---
wrong() { # MOOD WORDS
    again
    echo "$1" >server/mood
    push 1 run --to $uri
    [ "$(wc -l <err)" = 1 ] && [ "$(wc -c <err)" -lt 900 ] || fail "$1: $(cat err)"
    said "^sifr log push: $uri: $2"
    said 'the spool keeps all, and the same command goes on where this one stopped$'
    ! grep -q "$(printf '\033')" err || fail "$1: $(cat -v err)"
}
wrong huge 'the answer has more than 1048576 bytes'
wrong deep 'the answer is not one of MLflow'
wrong page 'the answer is not one of MLflow'
wrong odd 'the answer has no '
wrong torn '' # in curl's own words
wrong away ''
wrong moved 'HTTP 302; redirections are not followed'
wrong busy 'HTTP 429: REQUEST_LIMIT_EXCEEDED: Slow down'
export MLFLOW_TRACKING_TOKEN=s3cr3t-of-mine
wrong echo 'HTTP 500:  .31mINTERNAL_ERROR: You sent \*\*\*'
unset MLFLOW_TRACKING_TOKEN
again
# What it has taken stays, and is not sent again.
for after in 2 3 4; do
    echo "busy $after" >server/mood
    push 1 run --to $uri
done
rm server/mood server/calls
push 0 run --to $uri
[ "$(grep -c log-batch server/calls)" -lt 3 ] || fail "sent again: $(cat server/calls)"
check server 'len(k["runs"]) == 1 and len(m("loss")) == 3 and r["states"][-1] == "FINISHED"'

# --- a run whose server is wrong: the same run, one warning, and one line at the end ---
echo away >server/mood
MLFLOW_TRACKING_URI=$uri train_llama 0 alone 1
[ "$(grep -c 'mlflow: .*; the run goes on, and alone/spool.jsonl keeps its records' err)" = 1 ] || fail "$(cat err)"
[ "$(grep -c 'mlflow: [0-9]* of [0-9]* bytes of alone/spool.jsonl are not sent: .*`sifr log push alone` sends them' err)" = 1 ] ||
    fail "$(cat err)"
cmp run/model.safetensors alone/model.safetensors
again
push 0 alone --to $uri
check server 'len(k["runs"]) == 2 and len(m("loss")) == 3 and r["name"] == "alone"'
MLFLOW_TRACKING_URI=sqlite:///mlflow.db train_llama 2 refused 1
said 'mlflow: MLFLOW_TRACKING_URI (sqlite:…) is no address of a server'
push 2 run --to 'http://me:s3cr3t/of@127.0.0.1:1'
! grep s3cr3t out err || fail "a password with a / is shown"
[ ! -e refused ] || fail "a refused run left $(find refused)"

# --- values that a server refuses: the others of their call arrive, and each push says it again ---
refusals() { # FOLDER COUNT
    for i in 1 2; do
        rm -f picky/calls
        push 1 $1 --to $uri
        grep -q "; refused: $2 values\$" out || fail "$1: $(cat out)"
        said "$1: the server refuses $2 values: $uri: HTTP 400: INVALID_PARAMETER_VALUE: No metric loss is taken"
    done
    ! grep log-batch picky/calls || fail "sent again"
}
serve picky PLAYED_REFUSES=loss
refusals run 3
check picky 'm("tokens") and [s for s, _ in m("grad_norm")] == [2, 4, 6] and not m("loss")'
rm -r picky/calls
MLFLOW_TRACKING_URI=$uri train_llama 0 live 1
said 'mlflow: the server refused 3 values: '
refusals live 3
check picky 'len(k["runs"]) == 2 and m("tokens") and not m("loss")'
mkdir many
{ # a server that takes none, asked a few times
    printf '{"spool": 1, "run": "%s", "name": "many", "time": 1}\n' $(seq -s '' 10000 10005)ab
    for i in $(seq 900); do echo "{\"step\": $i, \"time\": 2, \"metrics\": {\"loss\": 2}}"; done
} >many/spool.jsonl
rm picky/calls
push 1 many --to $uri
[ $(grep -c log-batch picky/calls) -lt 50 ] || fail "$(grep -c log-batch picky/calls) calls"
refusals many 900

# --- logins ---
serve closed PLAYED_LOGIN="Bearer s3cr3t-of-mine"
push 1 run --to $uri
said "HTTP 401; set MLFLOW_TRACKING_TOKEN, or"
MLFLOW_TRACKING_TOKEN=s3cr3t-of-another push 1 run --to $uri
said "HTTP 401; the login that was given is not accepted"
MLFLOW_TRACKING_TOKEN=s3cr3t-of-mine MLFLOW_TRACKING_URI=$uri train_llama 0 by-token 1
check closed 'len(m("loss")) == 3'
serve basic PLAYED_LOGIN="Basic $(printf 'me:s3cr3t @of' | base64)"
push 1 run --to $uri
MLFLOW_TRACKING_USERNAME=me MLFLOW_TRACKING_PASSWORD='s3cr3t @of' push 0 by-token --to $uri
push 0 run --to "http://me:s3cr3t%20%40of@${uri#http://}"
check basic 'len(k["runs"]) == 2'
echo echo >basic/mood
push 1 run --to "http://me:s3cr3t%20%40of@${uri#http://}"
said 'INTERNAL_ERROR: You sent \*\*\*' # the header has the password in base64
rm basic/mood
push 2 run --to "ftp://me:s3cr3t@host/"
MLFLOW_TRACKING_USERNAME=me push 2 run --to $uri
said 'MLFLOW_TRACKING_USERNAME is set without MLFLOW_TRACKING_PASSWORD; set both, or none'
MLFLOW_TRACKING_URI=$uri MLFLOW_TRACKING_PASSWORD=s3cr3t train_llama 2 refused 1
said 'MLFLOW_TRACKING_PASSWORD is set without MLFLOW_TRACKING_USERNAME'
! grep -rl s3cr3t by-token run out err || fail "a password is kept or shown"

# --- numbers that JSON has not, keys that the server has not, batches; spools that are no run's ---
serve odd PLAYED_STORE=s3://bucket
mkdir hostile
echo secret >outside
ln -s ../outside hostile/link
python3 - >hostile/spool.jsonl <<'P'
import json
line = lambda **members: print(json.dumps(members))
line(spool=1, run="0123456789abcdef" * 2, name="a\n\"b\" \U0001f600", time=1000, experiment=None)
line(parameters={f"p{i}": "x" * 3000 for i in range(249)} | {"p249": "x" * 7000, "../e": "é" * 6000, "n": 3})
for i in range(700):
    line(step=i, time=2000 + i, metrics={"loss": i / 7, "i": "-Infinity", "x": "7"} |
         ({} if i % 100 else {"a b/%": "NaN"}))
print("[1]\n{\"step\": \n" + "y" * 3000000)
line(step=1, time=1, metrics={f"m{i}": "Infinity" for i in range(2500)})
for name in "../outside", "/etc/passwd", "link", "nowhere", "spool.jsonl":
    line(artifact=name)
line(end="FINISHED", time=9000)
print('{"end": "KILLED')
print('{"end": "KILLED", "time": 1}', end="")
P
push 1 hostile --to $uri
said 'hostile: the server refuses 5 values: ../outside: no file of the run'
grep -q '; refused: 5 values$' out || fail "$(cat out)"
said 'hostile/spool.jsonl: lines that are none of sifr.s are left out: 4'
! grep -q '^PUT' odd/calls || fail "a file has gone: $(grep PUT odd/calls)"
check odd 'len(m("loss")) == 700 and m("loss")[3] == (3, 3 / 7) and m("a b/_")[1] == (100, "NaN") and not m("x")'
check odd 'm("i")[1] == (1, "-Infinity") and m("m2499") == [(1, "Infinity")] and r["states"][-1] == "FINISHED"'
check odd 'len(r["params"]) == 251 and r["params"]["p249"] == "x" * 5997 + "…" and r["params"]["___e"][-1] == "…"'
[ "$(awk '/log-batch/ && $3 > 1000000' odd/calls)" = "" ] || fail "a call is too large"
rm hostile/spool.sent.json
push 1 hostile --to $uri
said 'hostile: the server refuses 5 values: ../outside' # and no NaN that it has
check odd 'len(k["runs"]) == 1 and len(m("loss")) == 700 and len(m("a b/_")) == 7'
printf '\n{"artifact": "kept"}\n' >>hostile/spool.jsonl # a file of the run, and a store that is not the server's
echo kept >hostile/kept
push 1 hostile --to $uri
said 'artefacts of the run are kept in s3, which is not supported yet'
for head in '' '{}' '{"run": "0123"}' '{"run": "../../../../../../../../../../../"}' 'x' '[]'; do
    echo "$head" >hostile/spool.jsonl
    push 1 hostile --to $uri
    said 'spool.jsonl: the first line names no run'
done

# --- another experiment than the one where the run is; a command that a shell takes as it is ---
serve elsewhere
push 0 run --to $uri
MLFLOW_EXPERIMENT_NAME=Default MLFLOW_EXPERIMENT_ID=0 push 0 run --to $uri
for other in NAME=other ID=7; do
    env MLFLOW_EXPERIMENT_$other "$SIFR" log push run --to $uri >out 2>err && fail "$other: pushed"
    said "the run is there in experiment 0, which is not the one that MLFLOW_EXPERIMENT_${other%=*} names"
done
check elsewhere 'list(k["experiments"]) == ["0"] and len(k["runs"]) == 1'
rm run/spool.sent.json
MLFLOW_EXPERIMENT_NAME=other push 0 run --to $uri
check elsewhere 'len(k["experiments"]) == 2 and len(k["runs"]) == 2'
train_llama 0 'a "b' 1
said "which .sifr log push 'a \"b' --to URI. sends later"

# --- a server that does not answer when the run has ended: said, and the first Ctrl-C ends the wait ---
serve quiet
echo slow >quiet/mood
began=$SECONDS
MLFLOW_TRACKING_URI=$uri "$SIFR" train --config ds.json --model llama --data text --output waits \
    --threads 1 >out 2>err &
trainer=$!
until_it grep -q '^mlflow: sending what is left, for at most 30 s; Ctrl-C ends it;' out
kill -INT $trainer
code=0
wait $trainer || code=$?
[ $code = 0 ] || fail "exit code $code: $(cat err)"
[ $((SECONDS - began)) -lt 25 ] || fail "waited for $((SECONDS - began)) s"
said '^done: 6 steps'
said '^model: waits'
said 'bytes of waits/spool.jsonl are not sent: .*stopped before its answer; `sifr log push waits` sends them'
rm quiet/mood
push 0 waits --to $uri
check quiet 'len(m("loss")) == 3 and r["states"][-1] == "FINISHED"'
