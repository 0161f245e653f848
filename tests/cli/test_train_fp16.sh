# Training in fp16 as a user runs it: it learns, its loss scale is shown and survives a resume, and an
# overflow at the least scale ends the run.
# label: full, not under sanitizers (test_train is)
. "$SOURCE/tests/support/expect.sh"
bits() { sha256sum <"$1/model.safetensors"; }
# Step, loss, norm, rate, skipped and loss scale.
figures() { cut -d, -f1,3-5,10,14 "$1/metrics.csv"; }

awk 'BEGIN { for (i = 0; i < 3000; i++) print "the cat sat on mat", i % 7, "and saw that dog" }' >text
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >/dev/null
cat >llama.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
 "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": true,
 "torch_dtype": "float16"}
J
"$SIFR" init --config llama.json --tokenizer tok --output model --seed 3 >/dev/null
# The scale begins far too high, and grows every third step without overflow.
cat >ds.json <<'J'
{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 4, "total_num_steps": 40}},
 "fp16": {"enabled": true, "initial_scale_power": 26, "loss_scale_window": 3},
 "sifr": {"seq_length": 64, "max_steps": 40}}
J
train() { "$SIFR" train --config ds.json --data text --model model --threads 2 "$@"; }

# --- it learns, and the scale is in the metrics and the lines ---
expect 0 train --output whole --json
grep -q '"steps": 40' out || fail "steps: $(cat out)"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    NR == 2 { first = $at["loss_scale"] }
    $at["loss"] != "" { if (begin == "") begin = $at["loss"]; last = $at["loss"] }
    { skipped = $at["skipped"]; seen[$at["loss_scale"]] = 1 }
    END {
        scales = 0
        for (s in seen) scales++
        if (first != 67108864 || skipped < 3 || skipped > 30 || scales < 4) exit 1
        if (!(begin > 5 && last < 0.7 * begin)) exit 2
    }' whole/metrics.csv || fail "figures: $(figures whole)"
expect 0 train --output lines --max-steps 8 --logging-steps 1
grep -Eq 'norm [^ ]+  scale [0-9.e+]+  ' out || fail "no scale: $(cat out err)"
grep -Eq 'step 2 skipped: a gradient overflows fp16; the loss scale was 6.7.*e\+07, the next step has 3.3' \
    out err || fail "not said: $(cat out err)"

# --- stopped in the middle of its search and later, and gone on: the same bits and figures ---
for at in 2 17; do
    rm -rf parts
    expect 0 train --output parts --save-steps $at
    for folder in parts/checkpoint-*; do
        [ "$folder" = parts/checkpoint-$at ] || rm -r "$folder"
    done
    echo checkpoint-$at >parts/latest
    rm parts/model.safetensors
    expect 0 train --output parts --resume
    grep -q "resumed from checkpoint-$at" out err || fail "not resumed: $(cat out err)"
    [ "$(bits parts)" = "$(bits whole)" ] || fail "resumed at $at: other bits"
    [ "$(figures parts)" = "$(figures whole)" ] || fail "resumed at $at: other figures"
done
grep -q '"scale":' parts/checkpoint-17/manifest.json || fail "no scaler in the checkpoint"

# --- a long search is no divergence: more than a hundred steps in a row, and then it learns ---
sed 's/"initial_scale_power": 26/"initial_scale_power": 126/; s/"max_steps": 40/"max_steps": 115/' \
    ds.json >long.json
expect 0 "$SIFR" train --config long.json --data text --model model --output long --threads 2
awk -F, '{ skipped = $10 } END { exit !(skipped > 100 && $3 < 5.7) }' long/metrics.csv ||
    fail "long search: $(tail -3 long/metrics.csv)"

# --- an overflow at the least scale ends it: code 1, one line, and the checkpoints stay ---
sed 's/"loss_scale_window": 3/"min_loss_scale": 33554432, "hysteresis": 1/' ds.json >least.json
expect 1 "$SIFR" train --config least.json --data text --model model --output least --save-steps 1
grep -Eq 'step 2: a gradient overflows fp16 at loss scale 3.35544e\+07, the least allowed' err ||
    fail "least: $(cat err)"
[ ! -e least/model.safetensors ] || fail "a model of nothing was written"

# --- what was written is fp16 as the model was, and is read as such ---
"$SIFR" inspect whole >out
grep -q F16 out || fail "inspect: $(cat out)"
expect 0 "$SIFR" eval --model whole --data text --seq-length 64 --json
grep -q '"precision": "fp16"' out || fail "eval: $(cat out)"
expect 0 "$SIFR" generate --model whole --prompt "the cat" --max-new-tokens 4 --precision fp16
expect 0 "$SIFR" plan --model model --fp16 --seq-length 64 --json
grep -q '"precision": "fp16"' out || fail "plan: $(cat out)"
