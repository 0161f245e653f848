# label: full; timeout: 300, not under sanitizers (MPI keeps what it took)
# Adapters over weights in 4 and 8 bits on tensor ranks, as a user starts them: the losses of one
# rank within 1e-5 over 20 steps, the same bits at each ZeRO stage with data ranks beside them; a run
# goes on with more or fewer tensor ranks; its adapter is that of one rank; what each axis moved is
# what was planned; a rank takes less memory than one that has all codes.
. "$SOURCE/tests/support/ranks.sh"
. "$SOURCE/tests/support/tensor_runs.sh"
tiny_model
sed 's/"hidden_size": 64/"hidden_size": 128, "head_dim": 64/; s/"intermediate_size": 160/"intermediate_size": 320/' \
    tiny.json >wide.json
"$SIFR" init --config wide.json --tokenizer tok --output wide --seed 3 >/dev/null
sed 's/llama/qwen3/; s/Llama/Qwen3/; ' wide.json >qwen.json
"$SIFR" init --config qwen.json --tokenizer tok --output qwen --seed 3 >/dev/null
lora='{"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}'
doubled=', "quantization": {"load_in_4bit": true, "bnb_4bit_quant_type": "nf4",
  "bnb_4bit_use_double_quant": true}'
plain=', "quantization": {"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"}'
adapter() { sha256sum <"$1/adapter_model.safetensors"; }
tune() { # RUN RANKS SIZE STAGE [OPTION...]
    settings "$3" "$4" "$codes"
    train "$1" "$2" --model "$model" --lora "$lora" "${@:5}"
}
planned() { awk '/"planned_bytes":/ { gsub(",", "", $2); print $2; exit }' out; }

model=wide codes=$doubled
tune one 1 1 0
whole=$(planned)
tune two 2 2 0
near two one
grep -q '^tensor_parallel: [0-9]* of [0-9]* matrices are divided among 2 ranks' err || fail "$(cat err)"
[ "$(planned)" -lt "$whole" ] || fail "two take $(planned) bytes each, one takes $whole"
for stage in 1 2 3; do
    tune two-$stage 4 2 $stage
    [ "$(adapter two-$stage)" = "$(adapter two)" ] || fail "stage $stage: other bits"
    groups | awk '$3 != $4 { exit 1 }' || fail "other bytes than planned: $(groups)"
done
tune four 4 4 0
near four one

# On with another number of tensor ranks; the adapter evaluates as one rank's does.
for on in "1 0 1" "4 3 4"; do
    set -- $on
    rm -rf on
    cp -r two-3 on
    rm -r on/checkpoint-20
    tune on "$3" "$1" "$2" --resume
    near on one
done
loss() { "$SIFR" eval --model wide --adapter "$1" --data text --seq-length 32 --json 2>/dev/null |
    awk '/"loss":/ { gsub(",", "", $2); print $2; exit }'; }
for run in two four; do
    awk -v a="$(loss one)" -v b="$(loss $run)" 'BEGIN { d = b / a - 1; exit !(a > 0 && d * d < 1e-10) }' ||
        fail "$run: an evaluation is $(loss $run), not $(loss one)"
done

# Norms of heads; one level of scales; magnitudes, whose norms are those of the codes' values.
model=qwen codes=$plain
tune qwen-one 1 1 0
tune qwen-two 4 2 2
near qwen-two qwen-one
lora='{"r": 4, "lora_alpha": 8, "use_dora": true, "target_modules": "all-linear"}'
tune dora-one 1 1 0
tune dora-four 4 4 1
near dora-four dora-one

# Rows of 160 columns are no whole blocks of 64 values: the MLP is whole on each rank, which is said.
# Where heads have 64 columns in all, one block, nothing can be divided.
lora='{"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}'
sed 's/"intermediate_size": 320/"intermediate_size": 160/' wide.json >odd.json
"$SIFR" init --config odd.json --tokenizer tok --output odd --seed 3 >/dev/null
model=odd
tune odd-one 1 1 0
tune odd-two 2 2 0
near odd-two odd-one
grep -q '^tensor_parallel: 18 of 44 matrices are divided' err || fail "odd: $(grep tensor_parallel err)"
settings 2 0 "$codes"
sed -i 's/"size": 2/&, "vocab_parallel_lm_head": false/' ds.json
"$SIFR" plan --config ds.json --model model --world-size 2 --lora "$lora" >out 2>err && fail "it runs"
grep -q '2 ranks cannot divide any product of this model: .* codes; leave them out' err || fail "$(cat err)"
