# shellcheck shell=bash
# Topic of compare-bits.sh: the text of `sifr plan`, and its list of instructions, priced on a machine
# that is written down.
planned() { # MODEL MEMBERS MEMBERS_OF_sifr OPTION…
    local model=$1 how
    ds "$2" "$3" "${optimizer:-}"
    sed -i 's/"train_batch_size": 4,//; s/, "max_steps": 3//' ds.json
    shift 3
    for how in "" --json --dump; do
        # shellcheck disable=SC2086 # none or one
        text "$sifr" plan --config ds.json --model "$model" --machine eight_cores.json --threads 8 \
            --isa avx2 --host-memory 16GiB $how "$@"
    done
}
while IFS='|' read -r what model members more options; do
    # shellcheck disable=SC2086 # several words
    compare "$what" planned $model "$members" "$more" $options
done <<'T'
one rank|tied|||
one rank, gpt2, unit order|gpt2|"gradient_accumulation_steps": 4,|"step_order": "unit",|
stage 1|untied|"zero_optimization": {"stage": 1},||--world-size 2
stage 2|untied|"zero_optimization": {"stage": 2}, "bf16": {"enabled": true},||--world-size 4 --rank 3
stage 3|tied|"zero_optimization": {"stage": 3}, "gradient_accumulation_steps": 2,||--world-size 8 --ranks-per-host 4
stage 3, fp16, beside DeepSpeed|gpt2|"zero_optimization": {"stage": 3}, "fp16": {"enabled": true},||--world-size 4 --compare deepspeed
recomputed|untied||"recompute": "unit",|
recomputed in part|untied||"activation_memory": "300KiB",|
state on disk|untied|"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "swap"}, "offload_param": {"device": "nvme", "nvme_path": "swap"}},||--world-size 2
gradients and activations on disk|tied|"zero_optimization": {"stage": 2},|"offload_gradients": "nvme", "offload_activations": "nvme", "nvme_path": "swap",|--world-size 2
gpipe|tied|"pipeline": {"stages": 2, "schedule": "gpipe"}, "gradient_accumulation_steps": 4,||--world-size 2
1f1b, last stage|untied|"pipeline": {"stages": 2}, "gradient_accumulation_steps": 4,||--world-size 4 --rank 3
interleaved|untied|"pipeline": {"stages": 2, "schedule": "interleaved", "chunks": 2}, "gradient_accumulation_steps": 4,||--world-size 2
zb-h1|tied|"pipeline": {"stages": 2, "schedule": "zb-h1"}, "gradient_accumulation_steps": 4,||--world-size 2
shard groups|gpt2|"zero_optimization": {"stage": 3},|"shard_size": 2,|--world-size 8
preferences|untied||"preference": {"loss_type": "sigmoid"},|--data pairs.jsonl --per-device-train-batch-size 2
ORPO|untied||"preference": {"loss_type": "orpo"},|--data pairs.jsonl --per-device-train-batch-size 2
distillation|untied||"distill": {"scores": "top-4"},|--data completions.jsonl
masked words|bert|||--data text.txt
deberta|deberta|||--data text.txt
labels|bert||"task": "sequence_classification",|--data twos.tsv
tags of a decoder|untied||"task": "token_classification",|--data tags.conll
LoRA|untied||"lora": {"r": 4},|
DoRA|untied||"lora": {"r": 4, "use_dora": true},|
QLoRA|untied||"lora": {"r": 4}, "quantization": {"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"},|
average of the weights|tied|"zero_optimization": {"stage": 2},|"ema": {"decay": 0.9},|--world-size 2
T
for type in SGD Adagrad Lion Lamb Muon Adafactor AdamWScheduleFree AdamW8bit; do
    params='"lr": 1e-3'
    [ "$type" != Adafactor ] || params='"relative_step": true'
    optimizer="{\"type\": \"$type\", \"params\": {$params}}" compare "$type" \
        planned untied '"zero_optimization": {"stage": 2},' '' --world-size 2
done
fitted() { # OPTION…
    echo '{"train_batch_size": 64, "bf16": {"enabled": true}, "zero_optimization": {"stage": "auto"},
        "train_micro_batch_size_per_gpu": "auto"}' >ds.json
    text "$sifr" plan --config ds.json --model tied --machine eight_cores.json --threads 8 \
        --isa avx2 --fit --output fit.json "$@"
    digest fit.json
}
compare "fit" fitted --host-memory 16GiB
compare "fit on 8 ranks, little memory" fitted --host-memory 160MiB --world-size 8 --seq-length 64
compare "fit on hosts" fitted --host-memory 1GiB --world-size 32 --ranks-per-host 8
