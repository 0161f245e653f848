# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
# Context ranks of kind "both" as a user starts them: on 4 ranks pairs exchange heads, and gather keys
# and values from each other: losses and evaluations of one rank within 1e-5; the bits of four with
# ZeRO, stages and recomputation beside them; what each axis moved is the formula's, to the byte;
# tensor ranks; LoRA; a run goes on. And each kind beside what codes weights and gradients: qwZ, qgZ,
# a base in 4 and in 8 bits.
. "$SOURCE/tests/support/ranks.sh"
tiny_model
# settings SIZE STAGE [MORE [SIFR [KEYS OF zero_optimization]]]: ds.json
kind=both
settings() {
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": $2${5:-}},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "sifr": {"seq_length": 32, "max_steps": 10, "save_steps": 10, "step_order": "batch",
          "context_parallel": {"size": $1, "kind": "$kind"}${4:-}}${3:-}}
J
}
train() { # RUN RANKS OPTION...
    run=$1 ranks=$2
    shift 2
    $launcher -np "$ranks" "$SIFR" train --config ds.json --model model --data text --json \
        --output "$run" "$@" >out 2>err || fail "$run: exit code $?: $(cat err)"
    [ $ranks = 1 ] || groups | awk '$3 != $4 { exit 1 }' ||
        fail "$run: other bytes than planned: $(groups)"
}
# near RUN LIKE [BOUND]: losses within 1e-5, or the bound
near() {
    awk -F, -v bound="${3:-1e-5}" 'NR == FNR { loss[$1] = $3; next }
        FNR > 1 && $3 != "" { n++; a = $3 / loss[$1] - 1
          if (a * a > bound * bound) { print "step " $1 ": " $3 ", not " loss[$1]; bad = 1 } }
        END { exit bad || n != 10 }' "$2/metrics.csv" "$1/metrics.csv" >difference ||
        fail "$1: $(cat difference)"
}
evaluated() { awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "eval_loss") e = i } $e ~ /[0-9]/ { v = $e } END { print v }' "$1/metrics.csv"; }
settings 1 0
train one 1
settings 4 2
train four 4
near four one
grep -q '^context_parallel: each of 4 ranks has 8 tokens of each sequence, half of them from its start and half from its end, and for attention exchanges heads with its neighbours, and gathers keys and values of its own from others' err ||
    fail "what is divided is not said: $(grep context err)"
grep -q '^bits: the same on 1, 2, 4, 8 ... times 4 context ranks' err || fail "$(grep bits err)"
# Rank 0, of 8 rows and 4 heads in pairs, forward, a block and micro batch: of q, and of what
# attention makes, the neighbour's 8 rows of half of the 64 columns each; of k and v, of 16 columns
# each, those of three other ranks, 8 rows each. Back as many of q and y, and of k and v what others
# have made of its own rows: its neighbour of all 8; the other pair of the first 4 of them, of the
# columns of the head that each has. Two blocks, 8 micro batches, 10 steps.
want=$((2 * 8 * 10 * 4 * (2 * 2 * 8 * 32 + 2 * 3 * 8 * 16 + 2 * (8 + 4 + 4) * 16)))
[ "$(groups | awk '/^contexts exchanged/ { print $3 }')" = $want ] ||
    fail "exchanged not $want: $(groups)"
settings 4 3 '' ', "recompute": "unit"'
train eight 8
same eight four
settings 4 3 ', "pipeline": {"stages": 2}'
train stages 8
same stages four
settings 4 0
train zero 4 --eval-data text --max-eval-windows 6 --eval-steps 10
near zero one
settings 1 0
train more 1 --eval-data text --max-eval-windows 6 --eval-steps 10
awk -v a="$(evaluated zero)" -v b="$(evaluated more)" 'BEGIN { exit !(a > 0 && (a / b - 1) ^ 2 < 1e-10) }' ||
    fail "evaluated: $(evaluated zero), not $(evaluated more)"
settings 4 2
sed -i 's/"max_steps": 10, "save_steps": 10/"max_steps": 10, "save_steps": 5/' ds.json
train half 4
rm -r half/checkpoint-10
train half 4 --resume
same half four
cp -r one on
rm -r on/checkpoint-10
sed -i 's/"max_steps": 10/"max_steps": 11/' ds.json
cp -r four/checkpoint-10 on/checkpoint-10
kind=gather
settings 4 2
sed -i 's/"max_steps": 10/"max_steps": 11/' ds.json
$launcher -np 4 "$SIFR" train --config ds.json --model model --data text --output on --resume \
    >out 2>err || fail "on: exit code $?"
grep -q 'was made with context_parallel.kind "both", this run has "gather": continuing, but results will differ' err ||
    fail "on: the difference is not said: $(cat err)"

# Of a model with four kv heads two tensor ranks leave two for the pairs.
sed 's/"num_key_value_heads": 2/"num_key_value_heads": 4/' tiny.json >wide.json
mv model narrow
"$SIFR" init --config wide.json --tokenizer tok --output model --seed 3 >/dev/null
kind=both
settings 1 0
train wide 1
settings 4 2 ', "tensor_parallel": {"size": 2}'
train tensors 8
near tensors wide
mv model wide-model && mv narrow model

# --- beside codes ---

for kind in ulysses gather both; do
    size=$([ $kind = both ] && echo 4 || echo 2)
    settings $size 3 '' '' ', "zero_quantized_weights": true'
    train qwz-$kind $size
    near qwz-$kind one 0.02
    ! cmp -s qwz-$kind/model.safetensors four/model.safetensors || fail "qwZ, $kind: the bits of none"
    train qwz-$kind-more $((2 * size))
    same qwz-$kind-more qwz-$kind
    settings $size 3 '' '' ', "zero_quantized_gradients": true'
    train qgz-$kind 4
    near qgz-$kind one 0.02
    grep -q 'bits: reproducible with .* only: gradients travel in 4 bits' err ||
        fail "qgZ, $kind: $(grep bits err)"
    groups | grep -q '^world exchanged' || fail "qgZ, $kind: $(groups)"
    train qgz-$kind-again 4
    same qgz-$kind-again qgz-$kind
done

bits() { sha256sum <"$1/adapter_model.safetensors"; }
lora='"lora": {"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}'
nf4='"quantization": {"load_in_4bit": true, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true}'
for base in none 4 8; do
    more=", $lora"
    [ $base != 4 ] || more="$more, $nf4"
    zero=$([ $base = 8 ] && echo ', "zero_quantized_nontrainable_weights": true' || :)
    kind=both
    settings 1 0 '' "$more" "$zero"
    train base-$base 1
    for kind in ulysses gather both; do
        size=$([ $kind = both ] && echo 4 || echo 2)
        settings $size 3 '' "$more" "$zero"
        train base-$base-$kind $size
        near base-$base-$kind base-$base
        train base-$base-$kind-more $((2 * size))
        same base-$base-$kind-more base-$base-$kind
    done
done
[ "$(bits base-none)" != "$(bits base-4)" ] && [ "$(bits base-none)" != "$(bits base-8)" ] ||
    fail "codes of the base change nothing"
