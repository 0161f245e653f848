# label: soak
# timeout: 900, not under sanitizers
# Folders with a tower as transformers and PEFT read them, in an environment with PyPI's packages:
# what a run leaves loads in the folder's own class without missing or unexpected keys, with the
# tower's values and with the loss of `sifr eval`; PEFT opens adapters, with modules to save and with
# ranks of their own, and computes what `sifr merge` wrote; the text model alone is the whole one.
# Skipped where pip cannot get the packages.
. "$SOURCE/tests/support/expect.sh"
STORE_WORDS=23
. "$SOURCE/tests/support/small_store.sh"
venv=$BUILD/python-soak # test_soak_trainer's
packages="numpy==2.4.6 torch==2.15.0 safetensors==0.8.0 transformers==5.24.0 peft==0.21.2"
if ! "$venv/bin/python" -c 'import transformers, peft' 2>/dev/null; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install $packages; } >pip.log 2>&1 ||
        { tail -n 3 pip.log; echo "no $packages from PyPI: skipped"; exit 77; }
fi
config() { # NAME MORE
    cat >"$1.json" <<J
{"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "AdamW", "params": {"lr": 2e-2}},
 "sifr": {"seq_length": 40, "max_steps": 3$2}}
J
}
config whole ""
config plain ', "lora": {"r": 2, "lora_alpha": 4, "target_modules": ["q_proj", "v_proj"]}'
config more ', "lora": {"r": 3, "target_modules": "all-linear", "exclude_modules": ["v_proj"],
    "modules_to_save": ["norm"], "rank_pattern": {"k_proj": 1}, "alpha_pattern": {"o_proj": 2}}'
golden=$SOURCE/tests/golden
for folder in "$golden"/multimodal/models/* "$golden"/gemma4/models/gemma4{,_unified}; do
    name=$(basename "$folder")
    mkdir "$name"
    cp -r "$folder" "$name/base"
    train() {
        expect 0 "$SIFR" train --config "$1.json" --data store --model "$name/base" --threads 1 \
            --output "$name/$1"
    }
    train whole
    expect 0 "$SIFR" eval --model "$name/whole" --data store --seq-length 40 --max-windows 3
    grep -o 'loss [0-9.]*' out | cut -d' ' -f2 >"$name/loss"
    expect 0 "$SIFR" export "$name/whole" "$name/text" --text-model
    for adapter in plain more; do
        train $adapter
        expect 0 "$SIFR" merge "$name/base" "$name/$adapter" "$name/merged-$adapter"
    done
done
HF_HUB_OFFLINE=1 "$venv/bin/python" "$SOURCE/tests/soak/multimodal_reads.py" >reads.log 2>&1 ||
    { tail -n 30 reads.log; fail "multimodal_reads.py"; }
tail -n 12 reads.log
