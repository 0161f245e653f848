# label: full
# What a run over two ranks says of its time and memory, as a user asks for it: the trace, whole and
# of a run that is stopped; the log of collectives against the ledger; the breakdowns.
# not under sanitizers (MPI keeps what it took), timeout: 200
fail() { echo "$1" >&2; tail -5 out err >&2 2>/dev/null || :; exit 1; }
trap 'kill -9 $(jobs -p) 2>/dev/null || :; wait || :' EXIT
. "$SOURCE/tests/support/find_mpi.sh"
picture=$BUILD/trace_picture
yes "the cat sat on a mat and saw that dog run over my big red house while we ate." | head -3000 >text
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >/dev/null
cat >llama.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
 "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 128, "tie_word_embeddings": false}
J
"$SIFR" init --config llama.json --tokenizer tok --output model --seed 3 >/dev/null
cat >ds.json <<'J'
{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2,
 "zero_optimization": {"stage": 3}, "wall_clock_breakdown": true, "memory_breakdown": true,
 "comms_logger": {"enabled": true},
 "sifr": {"model": "model", "data": "text", "seq_length": 64, "threads": 1}}
J

# --- a whole run ---
"$SIFR" train --config ds.json --ranks 2 --output run --max-steps 6 --trace t.json --json >out 2>err ||
    fail "the run failed"
"$picture" t.json >drawn || fail "the trace cannot be drawn: $(cat drawn)"
for queue in "rank 0   compute" "rank 0   communication" "rank 1   compute" "rank 1   communication"; do
    grep -q "^$queue .*|.*[fbgr].*|" drawn || fail "$queue is not in the picture"
done
grep -q '^step 4,' drawn || fail "not step 4 is the last: $(head -1 drawn)"
"$picture" --svg t.json >drawn.svg
head -1 drawn.svg | grep -q '<svg' && tail -1 drawn.svg | grep -q '</svg>' || fail "no SVG"
! "$picture" --step 5 t.json >/dev/null 2>&1 || fail "step 5 is in the trace"

# Every instruction of every traced step and rank is there, once.
instructions=$(sed -n 's/.*"instructions":\([0-9]*\).*/\1/p' t.json)
found=$(grep -c '"tid":0,.*"instruction":' t.json)
[ "$found" = $((instructions * 3 * 2)) ] || fail "$found instructions, not $instructions x 3 x 2"

# The steps' spans: no longer than all six steps took, and no moment of them unaccounted for.
took=$(awk -F'[:,]' '/"tokens_per_second"/ { rate = $2 } /"tokens"/ { tokens = $2 }
    END { print 1e6 * tokens / rate }' out)
awk -v took="$took" '
function value(key) { return match($0, "\"" key "\":[0-9.e+-]*") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : -1 }
/"cat":"step"/ && value("pid") == 0 { steps += value("dur"); next }
/"ph":"X"/ && value("pid") == 0 && value("tid") == 0 { inside += value("dur") }
END {
    printf "three steps of %.0f us in a run of %.0f us; instructions %.0f us\n", steps, took, inside
    exit !(steps > 0.05 * took && steps < took && inside <= steps && inside > 0.5 * steps)
}' t.json || fail "the spans do not add up"

# --- the log of collectives: what the ledger counts ---
same() { # NAME IN THE LOG, NAME IN THE RESULTS
    local ledger logged
    ledger=$(tr -d ' \n' <out | sed -n "s/.*\"$2\":{\"calls\":\([0-9]*\),\"bytes\":\([0-9]*\).*/\1 \2/p")
    logged=$(sed -n "s/^  $1 *all sizes: \([0-9]*\) calls, \([0-9,]*\) bytes.*/\1 \2/p" err | tr -d ,)
    [ -n "$ledger" ] && [ "$ledger" = "$logged" ] || fail "$1: logged $logged, counted $ledger"
}
same all_gather gathered
same reduce_scatter reduced
same control control
grep -q '^  stragglers .*last to enter' err || fail "no stragglers"

# --- breakdowns ---
grep -q '^  ms a step .* least .* median .* most .* slowest' err || fail "no breakdown over ranks"
grep -Eq '^  step .* rank [01] +100\.0%' err || fail "no line of the step"
for when in "before the first step" "after the first step" "at the end"; do
    grep -q "^  memory $when" err || fail "no memory $when"
done
awk '/^  planned / { planned = $2 } /^  measured / { measured = $2 } END { exit !(planned && measured) }' err ||
    fail "memory is not both planned and measured"

# --- a run that is stopped leaves the steps that it made ---
"$SIFR" train --config ds.json --ranks 2 --output stopped --max-steps 9000 --trace s.json \
    --trace-steps 2..9000 >out 2>err &
pid=$!
for try in $(seq 300); do
    grep -q '^step [1-9][0-9]*/' out && break
    sleep 0.1
done
sleep 0.5
kill -TERM $pid
code=0
wait $pid || code=$?
[ "$code" = 143 ] || fail "a stopped run: exit code $code"
"$picture" s.json >drawn || fail "the trace of a stopped run cannot be drawn"
echo "stopped: $(head -1 drawn | sed 's/,.*//') is the last in the trace"
