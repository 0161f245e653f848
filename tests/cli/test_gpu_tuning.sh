# label: full
# Adapters over weights in 4 bits (QLoRA), with magnitudes (DoRA), both, and LAMB on GPUs that fake
# drivers play, as a user trains with them: the steps of the CPU; ranks write the same folder at each
# stage of ZeRO; a checkpoint of two ranks goes on with one, and on the CPU.
# timeout: 600, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/expect.sh"
program=${SIFR_GPU_PROGRAM:-$BUILD/tests/sifr_on_fake_gpu}
. "$SOURCE/tests/support/mpirun.sh"

seq 1 400 | awk '{ print "line", $1 % 37, "of", $1 % 11, "things." }' >text
"$SIFR" tokenizer train --vocab-size 280 --data text --output tok >/dev/null 2>&1
cat >llama.json <<'J'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 280,
 "hidden_size": 32, "intermediate_size": 600, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": false}
J
cat >gpt2.json <<'J'
{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 280, "n_embd": 32,
 "n_layer": 2, "n_head": 4, "n_positions": 64}
J
for kind in llama gpt2; do
    "$SIFR" init --config $kind.json --tokenizer tok --output $kind --seed 3 >/dev/null
done

adam='"optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.1}}'
config() { # STAGE OPTIMIZER [KEYS OF sifr]
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 0.05,
 "zero_optimization": {"stage": $1}, $2,
 "sifr": {"seq_length": 24, "max_steps": 2${3:+, $3}}}
J
}
train() { # RANKS OUTPUT OPTION…
    local ranks=$1 output=$2
    shift 2
    expect 0 "$launcher" -n "$ranks" $options "$program" train --config ds.json --data text \
        --model "$model" --threads 1 --device cuda --output "$output" "$@"
}
bits() { cat "$1"/adapter_model.safetensors "$1"/model.safetensors 2>/dev/null | sha256sum; }
figure() { sed -n "s|^.*\"$2\":\([^,}]*\).*$|\1|p" "$1/metrics.jsonl" | tail -n 1; }
near() { # RUN REFERENCE FIGURE
    awk -v a="$(figure "$1" "$3")" -v b="$(figure "$2" "$3")" \
        'BEGIN { exit !(a != "" && b != "" && a - b < 1e-4 && b - a < 1e-4) }' ||
        fail "$what: $1: $3 is $(figure "$1" "$3"), not $(figure "$2" "$3")"
}

# all_ways NAME MODEL OPTIMIZER KEYS STAGE:RANKS…
all_ways() {
    local what=$1 model=$2 how stage ranks
    # The steps of the CPU, in fp32.
    config 0 "$3" "$4"
    rm -rf cpu gpu one away
    expect 0 "$SIFR" train --config ds.json --data text --model "$model" --threads 1 --device cpu \
        --output cpu --logging-steps 1
    train 1 gpu --logging-steps 1
    near gpu cpu loss
    near gpu cpu grad_norm
    # Ranks and stages, in bf16.
    train 1 one --bf16
    for how in "${@:5}"; do
        stage=${how%:*} ranks=${how#*:}
        config "$stage" "$3" "$4"
        rm -rf many
        train "$ranks" many --bf16
        [ "$(bits many)" = "$(bits one)" ] ||
            fail "$what: stage $stage, $ranks ranks: other bits than one rank"
    done
    # A checkpoint of two ranks, whose two files one rank reads, and the CPU.
    train 2 away --bf16 --save-steps 1
    rm -rf away/checkpoint-2 away/*model.safetensors
    echo checkpoint-1 >away/latest
    rm -rf on-cpu
    cp -r away on-cpu
    config 0 "$3" "$4"
    train 1 away --bf16 --resume
    [ "$(bits away)" = "$(bits one)" ] || fail "$what: resumed with one rank: other bits"
    expect 0 "$SIFR" train --config ds.json --data text --model "$model" --threads 1 --device cpu \
        --output on-cpu --bf16 --resume
}

lora='"lora": {"r": 4, "lora_alpha": 8, "target_modules": "all-linear", "init_lora_weights": false'
nf4='"quantization": {"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"'
all_ways "QLoRA, two quantisations" llama "$adam" \
    "$lora}, $nf4, \"bnb_4bit_use_double_quant\": true}" 0:2 1:2 2:2 3:1 3:2 3:4
double=$(bits one)
config 0 "$adam" "$lora}, $nf4}"
model=llama
train 1 plain --bf16
[ "$(bits plain)" != "$double" ] || fail "double quantization changes nothing"
all_ways "DoRA and QLoRA" llama "$adam" "$lora, \"use_dora\": true}, $nf4}" \
    1:2 3:2
config '3, "offload_param": {"device": "cpu"}' "$adam" "$lora, \"use_dora\": true}, $nf4}"
rm -rf many
train 2 many --bf16
[ "$(bits many)" = "$(bits one)" ] || fail "DoRA and QLoRA, codes in host memory: other bits"
all_ways "DoRA of transposed weights, with dropout" gpt2 "$adam" \
    '"lora": {"r": 3, "use_rslora": true, "lora_dropout": 0.2, "use_dora": true}' \
    0:2 2:2 3:4
all_ways "LAMB" llama '"optimizer": {"type": "Lamb", "params": {"lr": 1e-2, "weight_decay": 0.1}}' \
    '"ema": {"decay": 0.9}' 2:2 3:1 3:2
sed -i 's/"stage": [0-9]/"stage": 2, "sub_group_size": 5000, "offload_optimizer": {"device": "cpu"}/' \
    ds.json
rm -rf host
train 2 host --bf16
[ "$(bits host)" = "$(bits one)" ] || fail "LAMB with its state in host memory: other bits"

# What has no kernel yet is refused by name, with what has one.
for each in Muon:muon_begin Adafactor:adafactor_begin; do
    config 0 "\"optimizer\": {\"type\": \"${each%:*}\"}" '"logging_steps": 1'
    rm -rf no
    expect 2 "$program" train --config ds.json --data text --model llama --threads 1 --device cuda \
        --output no
    grep -q "kernel ${each#*:}: not built for GPUs yet; --device cpu has it$" err || fail "$each: $(cat err)"
done
