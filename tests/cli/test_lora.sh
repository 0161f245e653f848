# Low-rank adapters, as a user trains them: the same bits at every stage, number of ranks and tier,
# and when resumed by another number of ranks; an adapter folder that evaluates as the run does,
# merged or beside its base; and what is refused. That the numbers are PEFT's is tested in
# tests/engine/test_golden_lora.c.
# timeout: 400, each MPI
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/two_models.sh"
seq 1 4000 | awk '{ print "line", $1 % 37, "of", $1 % 11, "things." }' >text
"$SIFR" tokenizer train --vocab-size 300 --data text --output tok >/dev/null
two_models 64
config() { # LORA [MORE OF zero_optimization] [MORE]
    cat >ds.json <<J
{"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 0.05,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.1}},
 "zero_optimization": {"stage": 0${2:-}}, ${3:-}
 "sifr": {"seq_length": 32, "max_steps": 4, "save_steps": 2, "lora": {$1}}}
J
}
train() { # OUT OPTION...
    local out=$1
    shift
    rm -rf "$out"
    expect 0 "$SIFR" train --config ds.json --data text --threads 1 --output "$out" "$@"
}
hash_of() { sha256sum <"$1/adapter_model.safetensors"; }
disk=', "offload_optimizer": {"device": "nvme", "nvme_path": "swap"}'
disk="$disk, \"offload_param\": {\"device\": \"nvme\", \"nvme_path\": \"swap\"}"
mkdir swap

# The same bits. Dropout, patterns and biases go through all of it as well.
lora='"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"], "init_lora_weights": false'
all='"r": 3, "lora_alpha": 4, "target_modules": "all-linear", "lora_dropout": 0.2, "bias": "all",
    "modules_to_save": ["lm_head"], "rank_pattern": {"down_proj": 5}, "use_rslora": true'
conv='"r": 4, "bias": "lora_only", "init_lora_weights": "gaussian"'
for each in "llama $lora" "llama $all" "gpt2 $conv"; do
    model=${each%% *}
    for precision in "" --bf16; do
        config "${each#* }"
        train one --model $model $precision
        want=$(hash_of one)
        for how in 1:2 2:2 2:4 3:4; do
            sed "s/\"stage\": 0/\"stage\": ${how%:*}/" ds.json >other.json
            rm -rf many
            expect 0 "$SIFR" train --config other.json --data text --threads 1 --output many \
                --model $model $precision --ranks "${how#*:}"
            [ "$(hash_of many)" = "$want" ] || fail "$model $precision stage:ranks $how: other bits"
        done
        config "${each#* }" "$disk"
        sed -i 's/"stage": 0/"stage": 3/' ds.json
        train many --model $model $precision
        [ "$(hash_of many)" = "$want" ] || fail "$model $precision on disk: other bits"
    done
done
config "$lora"
train one --model llama
want=$(hash_of one)
sed 's/"stage": 0/"stage": 3/' ds.json >other.json
rm -rf resumed
expect 0 "$SIFR" train --config ds.json --data text --threads 1 --output resumed \
    --model llama --max-steps 2 --ranks 2
expect 0 "$SIFR" train --config other.json --data text --threads 1 --output resumed \
    --model llama --resume --ranks 4
[ "$(hash_of resumed)" = "$want" ] || fail "resumed with other ranks: other bits"

# What is said, and what is written: a checkpoint holds the adapters' state alone.
grep -q '^LoRA: adapters of 4 modules; trains 1,7[0-9][0-9] of ' out err || fail "not said: $(cat out)"
grep -q '"base_model_name_or_path": "'"$PWD"'/llama"' one/adapter_config.json || fail "no base"
[ ! -e one/model.safetensors ] || fail "a whole model is written"
bytes=$(cat one/checkpoint-4/*.safetensors | wc -c)
[ "$bytes" -lt 40000 ] || fail "a checkpoint of $bytes bytes"

# Planned to the byte: eight factors of a block of 1024 elements have masters and moments; the base
# has the 2 bytes of bf16, in blocks.
config "$lora" "" '"bf16": {"enabled": true},'
expect 0 "$SIFR" plan --config ds.json --model llama --json
tr -d '\n' <out >plan
grep -q '"master weights": *32768,' plan || fail "masters: $(cat plan)"
grep -q '"moments": *65536,' plan || fail "moments: $(cat plan)"

# One loss: beside the base, in a checkpoint, merged, and the adapter folder alone.
loss() { "$SIFR" eval --data text --seq-length 32 "$@" 2>/dev/null | grep -o 'loss [0-9.]*'; }
base=$(loss --model llama) own=$(loss --model one)
[ "$base" != "$own" ] || fail "the adapter changes nothing"
expect 0 "$SIFR" merge llama one merged
grep -q '^merged: .* 4 modules with the adapter$' out || fail "not said: $(cat out)"
expect 0 "$SIFR" unmerge merged one unmerged
mkdir alone
cp one/adapter_config.json one/adapter_model.safetensors alone
for model in "llama --adapter one" merged alone; do
    [ "$(loss --model $model)" = "$own" ] || fail "$model: another loss"
done
[ "$(loss --model unmerged)" = "$base" ] || fail "unmerged: another loss"
expect 0 "$SIFR" export one/checkpoint-4 exported
cmp exported/adapter_model.safetensors one/adapter_model.safetensors
# Each folder that has an adapter is exported as one that is read again, with the same loss.
for folder in one alone; do
    expect 0 "$SIFR" export $folder exported-$folder
    grep -q "from $folder$" out || fail "export of $folder: says $(cat out)"
    cmp exported-$folder/adapter_config.json one/adapter_config.json
    cmp exported-$folder/adapter_model.safetensors one/adapter_model.safetensors
    [ "$(loss --model exported-$folder)" = "$own" ] || fail "export of $folder: another loss"
done
expect 0 "$SIFR" generate --model one --prompt "line 3" --max-new-tokens 4
grep -q checkpoint err && { cat err; fail "a checkpoint is used in place of the adapter"; }
expect 0 "$SIFR" generate --model llama --adapter one --prompt "line 3" --max-new-tokens 4
expect 0 "$SIFR" generate --model merged --prompt "line 3" --max-new-tokens 4

# On from an adapter.
sed 's/, "lora": {.*}}/}}/' ds.json | sed 's/"bf16": {"enabled": true},//' >on.json
expect 0 "$SIFR" train --config on.json --data text --output on --model llama --adapter one
[ "$(hash_of on)" != "$want" ] || fail "it did not go on"
cmp on/adapter_config.json one/adapter_config.json
# An adapter folder as the model is trained on from its base, and planned so.
expect 0 "$SIFR" train --config on.json --data text --output folder --model alone
cmp folder/adapter_model.safetensors on/adapter_model.safetensors || fail "the folder alone: other bits"
cmp folder/adapter_config.json on/adapter_config.json
expect 0 "$SIFR" plan --config on.json --model alone
expect 2 "$SIFR" train --config ds.json --data text --output no --model alone
grep -q 'alone: an adapter folder, which has its own config, so leave sifr.lora out' err ||
    fail "both: $(cat err)"

# Another base than the adapter names is said once, by all that take one; the same base is not.
grep -q 'its base is' err && fail "the same base is called another"
cp -r llama elsewhere # the same model in another place
expect 0 "$SIFR" eval --model elsewhere --adapter one --data text --seq-length 32
grep -q 'its base is' err && fail "a copy is called another: $(cat err)"
expect 0 "$SIFR" unmerge merged one unmerged-again # whose weights are others by their nature
grep -q 'its base is' err && fail "what it is merged into is called another: $(cat err)"
"$SIFR" init --config llama.json --tokenizer tok --output seven --seed 7 >/dev/null
for command in "eval --model seven --adapter one --data text --seq-length 32" \
    "merge seven one merged-seven" \
    "train --config on.json --data text --output on-seven --model seven --adapter one"; do
    expect 0 "$SIFR" $command # the same config.json, other weights
    [ "$(grep -c "one: its base is $PWD/llama (base_model_name_or_path), not seven" err)" = 1 ] ||
        fail "$command: $(cat err)"
done
cp -r alone named
sed -i 's,"base_model_name_or_path": "[^"]*","base_model_name_or_path": "meta-llama/Llama-9",' named/adapter_config.json
names_other() { # COMMAND…
    expect 0 "$@"
    [ "$(grep -c 'named: its base is meta-llama/Llama-9 (base_model_name_or_path), not llama' err)" = 1 ] ||
        fail "$*: $(cat err)"
}
names_other "$SIFR" eval --model llama --adapter named --data text --seq-length 32
names_other "$SIFR" merge llama named merged-named
names_other "$SIFR" train --config on.json --data text --output on-named --model llama --adapter named
expect 2 "$SIFR" train --config on.json --data text --output no --model named
grep -q 'named: an adapter, whose base (meta-llama/Llama-9) is not here' err || fail "$(cat err)"
ln -s "$PWD/llama" Llama-9 # the name of the Hub
expect 0 "$SIFR" eval --model Llama-9 --adapter named --data text --seq-length 32
grep -q 'its base is' err && fail "a folder of that name is called another: $(cat err)"

# What is one of these folders in the place of another is named, with what to do.
wrong() { # CODE PATTERN COMMAND…
    expect "$1" "$SIFR" "${@:3}"
    grep -Eq "$2" err || fail "${*:3}: says $(cat err)"
}
wrong 2 'one is the adapter and llama is none; the order is BASE ADAPTER DEST' merge one llama no
wrong 1 'llama/adapter_config.json: not there, so llama is no adapter folder' merge llama llama no
wrong 1 'llama is no adapter folder' eval --model llama --adapter llama --data text --seq-length 32
wrong 2 'checkpoint-4: a checkpoint, not a model folder; make one of it first: sifr export one/checkpoint-4 ' \
    export one/checkpoint-4 no.gguf --format gguf
mv Llama-9 Llama-8
for command in "export named no" "eval --model named --data text --seq-length 32"; do
    wrong 2 'base .meta-llama/Llama-9. is not here: write .* \(base_model_name_or_path\)' $command
done
expect 0 "$SIFR" inspect alone
grep -q '^alone: an adapter folder$' out && grep -q '^weights: 8 tensors' out || fail "$(cat out)"
grep -q '^  base_model_name_or_path  *'"$PWD/llama" out || fail "$(cat out)"

# Refused, by name.
refused() { # CODE PATTERN LORA
    config "$3"
    rm -rf no
    expect "$1" "$SIFR" train --config ds.json --data text --output no --model llama
    grep -Eq "$2" err || fail "$3: says $(cat err)"
}
refused 2 'sifr.lora: lora_bias is not built' '"lora_bias": true'
refused 2 'sifr.lora: lora_aplha is no key of PEFT.s LoraConfig; did you mean lora_alpha' '"lora_aplha": 4'
refused 2 'peft_type LOHA is not built' '"peft_type": "LOHA"'
refused 2 'init_lora_weights pissa is not built' '"init_lora_weights": "pissa"'
refused 2 'r 0 must be from 1' '"r": 0'
refused 2 'lora_dropout 1 must be in' '"lora_dropout": 1.0'
refused 2 'no module of the model has such a name; names look like .*_proj$' '"target_modules": ["c_attn"]'
refused 2 'lm_head is no product inside' '"target_modules": ["q_proj", "lm_head"]'
refused 2 'is no regular expression that is built' '"target_modules": "(?=q_proj)"'
refused 2 'modules_to_save: no module of the model is called score' '"modules_to_save": ["score"]'
refused 2 'layers_to_transform is for a list' '"target_modules": ".*q_proj", "layers_to_transform": 1'
expect 2 "$SIFR" train --config ds.json --data text --output no --model llama --adapter one
grep -q 'both given' err || fail "both: $(cat err)"
expect 2 "$SIFR" eval --model gpt2 --adapter one --data text --seq-length 32
grep -q 'one/adapter_config.json: target_modules: no module' err || fail "other model: $(cat err)"
cp -r one broken
size=$(od -An -tu8 -N8 one/adapter_model.safetensors | tr -d ' ')
printf '\000\000\300\177' | dd of=broken/adapter_model.safetensors bs=1 seek=$((size + 8)) \
    conv=notrunc 2>/dev/null
expect 1 "$SIFR" eval --model llama --adapter broken --data text --seq-length 32
grep -q 'broken/adapter_model.safetensors: tensor base_model.*: value 0 is nan' err ||
    fail "NaN: $(cat err)"
sed -i 's/"r": 4/"r": 2/' broken/adapter_config.json
expect 1 "$SIFR" eval --model llama --adapter broken --data text --seq-length 32
grep -q 'is it of another base' err || fail "another rank: $(cat err)"
