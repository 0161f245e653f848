# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
# Context ranks that gather keys and values, as a user starts them: losses and evaluations of one
# rank within 1e-5, on 2 ranks and on 4, which are more than the kv heads and do not divide the
# heads; the bits of two with ZeRO over data ranks, stages and recomputation beside them; a window;
# LoRA; what each axis moved is what was planned; refusals by name.
. "$SOURCE/tests/support/ranks.sh"
tiny_model
sed 's/"num_attention_heads": 4/"num_attention_heads": 3/; s/"num_key_value_heads": 2/"num_key_value_heads": 1/; s/"hidden_size": 64/"hidden_size": 48/' tiny.json >odd.json
mv model narrow
"$SIFR" init --config odd.json --tokenizer tok --output model --seed 3 >/dev/null
# settings SIZE STAGE [MORE [SIFR]]: ds.json
settings() {
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": $2},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "sifr": {"seq_length": 32, "max_steps": 10, "save_steps": 10, "eval_steps": 10,
          "step_order": "batch",
          "context_parallel": {"size": $1, "kind": "gather"}${4:-}}${3:-}}
J
}
data="--data text --eval-data text --max-eval-windows 6"
train() { # RUN RANKS OPTION...
    run=$1 ranks=$2
    shift 2
    $launcher -np "$ranks" "$SIFR" train --config ds.json --model model $data --json \
        --output "$run" "$@" >out 2>err || fail "$run: exit code $?: $(cat err)"
}
planned() { groups | awk '$3 != $4 { exit 1 }' || fail "$run: other bytes than planned: $(groups)"; }
# near RUN [LIKE]: losses and norms within 1e-5 and 1e-4, and what the evaluation gave
near() {
    awk -F, 'FNR == 1 { for (i = 1; i <= NF; i++) if ($i == "eval_loss") e = i; next }
        NR == FNR && $e != "" { eval[$1] = $e; next }
        NR == FNR { loss[$1] = $3; norm[$1] = $4; next }
        $e != "" { m++; c = $e / eval[$1] - 1; if (c * c > 1e-10) { print "eval " $1 ": " $e; bad = 1 } }
        $e == "" { n++; a = $3 / loss[$1] - 1; b = $4 / norm[$1] - 1
          if (a * a > 1e-10 || b * b > 1e-8) { print "step " $1 ": " $3 " and " $4; bad = 1 } }
        END { exit bad || n != 10 || m != 1 }' "${2:-one}/metrics.csv" "$1/metrics.csv" \
        >difference || fail "$1: $(cat difference)"
}
settings 1 0
train one 1
settings 2 2
train two 2
near two
grep -q '^context_parallel: each of 2 ranks has 16 tokens of each sequence, half of them from its start and half from its end, and for attention gathers keys and values' err ||
    fail "what is divided is not said"
grep -q '^bits: the same on 1, 2, 4, 8 ... times 2 context ranks' err || fail "$(grep bits err)"
# Of k and v, 16 columns each in two blocks, rank 0 gets the other's 16 rows forward; back it gets
# what the other has of its own 8 first rows, as nothing of the other's sees its last ones. 8 micro
# batches, 10 steps. Evaluations add theirs.
want=$((2 * 2 * 16 * 4 * (16 + 8) * 8 * 10))
groups | grep '^contexts exchanged' | awk -v want=$want '$3 < want || $3 > want * 1.1 { exit 1 }' ||
    fail "exchanged, with evaluations, not some $want: $(groups)"
settings 2 3 '' ', "recompute": "unit"'
train four 4
same four two
settings 2 2 ', "pipeline": {"stages": 2}'
train stages 4
same stages two
planned
settings 4 1
train wide 4
near wide
planned
settings 1 0
train lora 1 --lora '{"r": 4}'
settings 2 3
train lora2 4 --lora '{"r": 4}'
near lora2 lora
settings 2 2
sed -i 's/"max_steps": 10, "save_steps": 10/"max_steps": 10, "save_steps": 5/' ds.json
train half 2
rm -r half/checkpoint-10
train half 2 --resume
same half two

# A window's keys alone travel: of the far runs nothing, of the near ones its length.
sed 's/"model_type": "llama"/"model_type": "mistral"/; s/"LlamaForCausalLM"/"MistralForCausalLM"/; s/^{/{"sliding_window": 40, /' odd.json >window.json
exchanged() { # FOLDER: bytes of a step
    "$SIFR" plan --config ds.json --model "$1" --world-size 4 --seq-length 1024 --json >out 2>err ||
        fail "$1: $(cat err)"
    awk '/"contexts": {/ { inside = 1 } inside && /"exchanged_bytes":/ { gsub(",", "", $2); print $2; exit }' out
}
"$SIFR" init --config window.json --tokenizer tok --output window --seed 3 >/dev/null
settings 4 1
whole=$(exchanged model) some=$(exchanged window)
[ "$some" -gt 0 ] && [ $((some * 4)) -lt "$whole" ] || fail "a window's exchanges: $some of $whole"
mv model whole && mv window model
settings 1 0
train near1 1 --seq-length 64
settings 2 0
train near2 2 --seq-length 64
near near2 near1
mv model window && mv whole model

# The longest sequence that fits is one that the ranks divide, wherever the search begins. What the
# program itself takes depends on the length a little.
settings 4 3
for length in 64 1000 4096; do
    "$SIFR" plan --config ds.json --model model --world-size 4 --seq-length $length \
        --device-memory 64MiB --threads 1 --json >out 2>err || fail "longest: $(cat err)"
    sed -n 's/^  "largest_seq_length": \([0-9]*\),/\1/p' out
done >longest
awk '{ bad += $1 % 8 != 0 || $1 < 4096 } NR == 1 { first = $1 }
    { off = $1 / first - 1; bad += off * off > 0.0025 }
    END { exit bad || NR != 3 }' longest || fail "the longest: $(cat longest)"

# refused SIZE MODEL MESSAGE [OPTION...]: with four ranks
refused() {
    settings "$1" 0
    model=$2 want=$3
    shift 3
    "$SIFR" plan --config ds.json --model "$model" --world-size 4 "$@" >out 2>err && fail "$want: it runs"
    grep -q -- "$want" err || fail "$want: $(cat err)"
}
refused 4 model 'sequences of 36 tokens are not divided among 4 ranks in two runs each; give a seq_length of 32' --seq-length 36
sed -i 's/"kind": "gather"/"kind": "ring"/' ds.json
"$SIFR" plan --config ds.json --model model --world-size 4 >out 2>err && fail "ring runs"
grep -q 'context_parallel.kind must be one of ulysses, gather' err || fail "$(cat err)"
