# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
# Context ranks as a user starts them: losses and evaluations of one rank within 1e-5 over 20 steps,
# on 2 and 4 context ranks; with ZeRO over data ranks and stages beside them the bits of two, and
# recomputation changes none; tensor ranks; what each axis moved is what was planned; LoRA; a run goes
# on with more or fewer context ranks; refusals by name.
. "$SOURCE/tests/support/ranks.sh"
tiny_model
sed 's/"num_key_value_heads": 2/"num_key_value_heads": 4/' tiny.json >wide.json
mv model narrow
"$SIFR" init --config wide.json --tokenizer tok --output model --seed 3 >/dev/null
# settings SIZE STAGE [MORE [SIFR]]: ds.json
settings() {
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": $2},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "sifr": {"seq_length": 32, "max_steps": 20, "save_steps": 10, "eval_steps": 10,
          "step_order": "batch", "context_parallel": {"size": $1}${4:-}}${3:-}}
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
# near RUN [LIKE]: losses and norms within 1e-5 and 1e-4, and what evaluations gave
near() {
    awk -F, 'FNR == 1 { for (i = 1; i <= NF; i++) if ($i == "eval_loss") e = i; next }
        NR == FNR && $e != "" { eval[$1] = $e; next }
        NR == FNR { loss[$1] = $3; norm[$1] = $4; next }
        $e != "" { m++; c = $e / eval[$1] - 1; if (c * c > 1e-10) { print "eval " $1 ": " $e; bad = 1 } }
        $e == "" { n++; a = $3 / loss[$1] - 1; b = $4 / norm[$1] - 1
          if (a * a > 1e-10 || b * b > 1e-8) { print "step " $1 ": " $3 " and " $4; bad = 1 } }
        END { exit bad || n != 20 || m != 2 }' "${2:-one}/metrics.csv" "$1/metrics.csv" \
        >difference || fail "$1: $(cat difference)"
}
settings 1 0
train one 1
settings 2 2
train two 2
near two
grep -q '^context_parallel: each of 2 ranks has 16 tokens of each sequence, and in attention all tokens of 1/2 of the heads' err ||
    fail "what is divided is not said"
grep -q '^mesh: 2 contexts, all on one host' err || fail "the mesh is not said: $(grep mesh err)"
grep -q '^bits: the same on 1, 2, 4, 8 ... times 2 context ranks' err || fail "$(grep bits err)"
# Of q, k, v and what attention makes, 64 columns each in two blocks, there and back, a rank gets
# from the other half of the half that it has; 8 micro batches, 20 steps. Evaluations add theirs.
want=$((4 * 64 * 32 * 4 / 2 / 2 * 2 * 2 * 8 * 20))
groups | grep '^contexts exchanged' | awk -v want=$want '$3 < want || $3 > want * 1.05 { exit 1 }' ||
    fail "exchanged, with evaluations, not some $want: $(groups)"
settings 2 3
train four 4
same four two
settings 2 3 '' ', "recompute": "unit"'
train again 4
same again two
settings 2 2 ', "pipeline": {"stages": 2}'
train stages 4
same stages two
planned
settings 2 2 ', "tensor_parallel": {"size": 2}'
train tensors 4
near tensors
planned
settings 2 0
train zero 4
near zero two
grep -q '^bits: reproducible with 2 times 2 context ranks only: sums over context ranks follow' err ||
    fail "zero: $(grep bits err)"
settings 4 1
train wide 4
near wide
sed 's/"context_parallel": {"size": 4}/"device": "cpu"/; s/^{/{"sequence_parallel_size": 4, /' ds.json >ulysses.json
mv ulysses.json ds.json
train ulysses 4
same ulysses wide

# On with another number of context ranks: what was saved is the same, so the losses stay near.
on() { # NAME FROM SIZE STAGE RANKS
    cp -r "$2" "$1"
    rm -r "$1/checkpoint-20"
    settings "$3" "$4"
    train "$1" "$5" --resume
    near "$1"
}
on fewer four 1 0 1
grep -q 'was made with context ranks 2, this run has 1: continuing, but results will differ' err ||
    fail "fewer: the difference is not said"
on more one 4 3 4
grep -q 'was made with context ranks 1, this run has 4' err || fail "more: it is not said"
on on four 2 2 2
same on two
! grep -q 'results will differ' err || fail "on: $(cat err)"
"$SIFR" export two/checkpoint-20 exported >out 2>err || fail "export: $(cat err)"
cmp exported/model.safetensors two/model.safetensors || fail "the export differs"

settings 1 0
train lora 1 --lora '{"r": 4}'
settings 2 3
train lora2 4 --lora '{"r": 4}'
near lora2 lora

# refused SIZE MODEL MESSAGE [OPTION...]: with four ranks
refused() {
    settings "$1" 0
    model=$2 want=$3
    shift 3
    "$SIFR" plan --config ds.json --model "$model" --world-size 4 "$@" >out 2>err && fail "$want: it runs"
    grep -q -- "$want" err || fail "$want: $(cat err)"
}
refused 3 model 'sifr.context_parallel.size is 3, which does not divide 4 ranks; give 2 or 4'
refused 4 model 'sequences of 30 tokens are not divided among 4 ranks; give a seq_length of 28' --seq-length 30
sed -i 's/"num_key_value_heads": 4/"num_key_value_heads": 3/; s/"num_attention_heads": 4/"num_attention_heads": 6/; s/"hidden_size": 64/"hidden_size": 96/' wide.json
"$SIFR" init --config wide.json --tokenizer tok --output six --seed 3 >/dev/null
refused 4 six 'layers.0: 6 heads are not divided among 4 ranks; give 2, 3 or 6'
refused 2 six 'layers.0: 3 kv heads are not divided among 2 ranks, nor are 2 ranks among them; give 3'
# What no length mends is said first.
refused 4 six '6 heads are not divided among 4 ranks' --seq-length 30
refused 2 model 'DoRA (use_dora) is not supported with context ranks' --lora '{"r": 4, "use_dora": true}'
refused 2 model 'preferences (sifr.preference) are not supported with 2 context' --preference sigmoid --per-device-train-batch-size 2 \
    --gradient-accumulation-steps 1
settings 2 0
sed -i 's/^{/{"pipeline": {"stages": 4}, /' ds.json
"$SIFR" plan --config ds.json --model model --world-size 4 >out 2>err && fail "4 x 2 of 4 ranks run"
grep -q '4 stages x 2 contexts take a multiple of 8 ranks, and there are 4; start' err ||
    fail "4 x 2 of 4 ranks: $(cat err)"
settings 4 1
sed -i 's/^{/{"sequence_parallel_size": 2, /' ds.json
"$SIFR" plan --config ds.json --model model --world-size 4 >out 2>err && fail "two sizes run"
grep -q 'context_parallel.size is 4 and sequence_parallel_size is 2; give one' err || fail "$(cat err)"
