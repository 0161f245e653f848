# What is kept of activations, as users meet it: the plan's table, a limit that the run keeps to, a
# refusal with the number that works, the times of units, one line for what has no effect here, and
# the same weights each way, on one rank and on two.
# label: full, timeout: 120, each MPI, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/ranks.sh"
tiny_model
bits() { sha256sum <"$1/model.safetensors"; }
train() { # OUTPUT RANKS FLAGS…
    local output=$1 ranks=$2
    shift 2
    $launcher -n "$ranks" "$SIFR" train --config ds.json --model model --data text --threads 1 \
        --output "$output" --max-steps 2 "$@" >out 2>err || fail "$output: exit code $?"
}
plan() { "$SIFR" plan --config ds.json --model model "$@" >out 2>err; }
most() { # of activations, in bytes, as the plan in `out` has them
    awk '/"at_most"/ { on = 1 } on && /"activations"/ { getline; gsub(/[^0-9]/, ""); print; exit }' out
}

# --- the plan: everything, nothing, and what half of the difference allows ---
plan || fail "plan"
grep -q 'for the backward pass' out && fail "a table of what is kept where everything is"
plan --json || fail "plan --json"
all=$(most)
plan --recompute unit --json || fail "plan --json"
least=$(most)
[ "$least" -lt "$all" ] || fail "recomputation takes $least, none $all"
limit=$(((least + all) / 2))
plan --activation-memory $limit || fail "plan --activation-memory"
grep -Eq '^attention +2 +[0-9.]+ KiB +0 +0$' out || fail "attention is not kept"
grep -Eq '^rms_norm input_layernorm +[01] +[0-9.]+ (KiB|B|bytes) +[12] ' out || fail "norms are kept"
grep -Eq '^recompute +activations take .* that they may; of .* are kept' out || fail "no sum of it"
plan --activation-memory $((least - 1)) && fail "less than the least is planned"
[ $? = 2 ] || fail "not exit code 2"
named=$(sed -n 's/.*at least .*(\([0-9]*\) bytes).*/\1/p' err)
[ "$named" = "$least" ] || fail "the least is $least, named is $named"
plan --activation-memory "$named" || fail "the number that was named does not work"

# --- the run: the same weights, and what it says ---
train none 1
for flags in "--recompute unit" "--activation-memory $limit" "--activation-memory auto"; do
    # shellcheck disable=SC2086
    train other 1 $flags
    [ "$(bits other)" = "$(bits none)" ] || fail "$flags: other bits"
    [ "$flags" = "--recompute unit" ] ||
        grep -Eq '^recompute auto: activations take .* results that the backward pass reads' out ||
        fail "$flags: not said"
    rm -r other
done
sed -i 's|^{|{"activation_checkpointing": {"partition_activations": true, "profile": true,\
 "contiguous_memory_optimization": true, "number_checkpoints": 1},|' ds.json
train one 2
[ "$(bits one)" = "$(bits none)" ] || fail "number_checkpoints: other bits"
[ "$(grep -c 'partition_activations has no effect: no two ranks hold the same' out)" = 1 ] || fail "not said once"
grep -Eq '^ +ms a step, median rank +forward +recompute +backward' out || fail "no times of units"
# the first block is run twice more, the head's norm once
awk '$1 == "layers.0" && $2 > 0 && $3 > 0 && $4 > 0 { found = 1 } END { exit !found }' out ||
    fail "no times of layers.0"
