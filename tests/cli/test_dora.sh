# Adapters with magnitudes (DoRA), as a user trains them: the same bits at every stage and number of
# ranks; they begin as the norms of the base; an adapter folder that evaluates as it does merged; and
# what is refused. That the numbers are PEFT's is tested in tests/engine/test_golden_lora.c.
# timeout: 200
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/two_models.sh"
seq 1 4000 | awk '{ print "line", $1 % 37, "of", $1 % 11, "things." }' >text
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >/dev/null
two_models 64
config() { # LORA [MORE]
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 0.05,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.1}},
 "zero_optimization": {"stage": 0}, ${2:-}
 "sifr": {"seq_length": 32, "max_steps": 4, "save_steps": 2, "lora": {"use_dora": true, $1}}}
J
}
train() { # OUT OPTION...
    local out=$1
    shift
    rm -rf "$out"
    expect 0 "$SIFR" train --config ds.json --data text --threads 1 --output "$out" "$@"
}
hash_of() { sha256sum <"$1/adapter_model.safetensors"; }

plain='"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "down_proj"]'
dropped='"r": 3, "lora_dropout": 0.2, "target_modules": "all-linear", "init_lora_weights": false'
conv='"r": 4, "use_rslora": true'
for each in "llama $plain" "llama $dropped" "gpt2 $conv"; do
    model=${each%% *}
    config "${each#* }"
    for precision in "" --bf16; do
        train one --model $model $precision
        want=$(hash_of one)
        for how in 1:2 2:4 3:4; do
            sed "s/\"stage\": 0/\"stage\": ${how%:*}/" ds.json >other.json
            rm -rf many
            expect 0 "$SIFR" train --config other.json --data text --threads 1 --output many \
                --model $model $precision --ranks "${how#*:}"
            [ "$(hash_of many)" = "$want" ] || fail "$model $precision stage:ranks $how: other bits"
        done
        train many --model $model $precision --recompute unit
        [ "$(hash_of many)" = "$want" ] || fail "$model $precision recomputed: other bits"
    done
done

# What they begin as: the first step's loss is that of the same adapter without magnitudes.
first() { sed -n '/"step": *1[,}]/s/.*"loss": *\([0-9.]*\).*/\1/p' "$1/metrics.jsonl" | head -n 1; }
near() { # A B WHAT
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-10 * a * a) }' ||
        fail "$3: $1 and $2"
}
config "$plain"
train one --model llama --logging-steps 1
sed -i 's/"use_dora": true, //' ds.json
train lora --model llama --logging-steps 1
near "$(first one)" "$(first lora)" "first losses"
[ "$(hash_of one)" != "$(hash_of lora)" ] || fail "magnitudes change nothing"

# One loss: beside the base, merged, in a checkpoint; and on from the adapter.
loss() { "$SIFR" eval --data text --seq-length 32 "$@" 2>/dev/null | grep -o 'loss [0-9.]*' | cut -d ' ' -f 2; }
for each in "llama $plain" "gpt2 $conv"; do
    model=${each%% *}
    config "${each#* }"
    train one --model $model
    own=$(loss --model $model --adapter one)
    [ "$own" != "$(loss --model $model)" ] || fail "$model: the adapter changes nothing"
    rm -rf merged
    expect 0 "$SIFR" merge $model one merged
    near "$own" "$(loss --model merged)" "$model: merged"
    expect 2 "$SIFR" unmerge merged one unmerged
    grep -q 'use_dora' err || fail "unmerge says $(cat err)"
done
grep -aq 'lora_magnitude_vector"' one/adapter_model.safetensors || fail "PEFT's names are not there"
grep -q '"use_dora": true' one/adapter_config.json || fail "not in adapter_config.json"
sed 's/, "lora": {.*}}/}}/' ds.json >on.json
expect 0 "$SIFR" train --config on.json --data text --output on --model gpt2 --adapter one
[ "$(hash_of on)" != "$(hash_of one)" ] || fail "it did not go on"

# Beside a base in 4 bits: magnitudes begin as the norms of what the codes stand for, so the first
# loss is again that of the same adapter without them.
nf4='"quantization": {"load_in_4bit": true, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true}, "lora": '
coded() { # DS.JSON
    sed -i "s/\"lora\": /$nf4/" "$1"
}
for precision in "" --bf16; do
    config "$dropped"
    coded ds.json
    train one --model llama $precision --logging-steps 1
    for how in 1:2 2:4 3:4; do
        sed "s/\"stage\": 0/\"stage\": ${how%:*}/" ds.json >other.json
        rm -rf many
        expect 0 "$SIFR" train --config other.json --data text --threads 1 --output many \
            --model llama $precision --ranks "${how#*:}"
        [ "$(hash_of many)" = "$(hash_of one)" ] || fail "in 4 bits $precision stage:ranks $how"
    done
done
config "$plain"
train uncoded --model llama --logging-steps 1
coded ds.json
train one --model llama --logging-steps 1
sed -i 's/"use_dora": true, //' ds.json
train lora --model llama --logging-steps 1
near "$(first one)" "$(first lora)" "first losses in 4 bits"
[ "$(first one)" != "$(first uncoded)" ] || fail "codes change nothing"

refused() { # PATTERN LORA [MORE]
    config "$2" "${3:-}"
    rm -rf no
    expect 2 "$SIFR" train --config ds.json --data text --output no --model llama
    grep -Eq "$1" err || fail "$2: says $(cat err)"
}
refused 'use_dora with a bias that is trained is not built' '"bias": "all"'
