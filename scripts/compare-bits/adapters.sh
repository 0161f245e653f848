# shellcheck shell=bash
# Topic of compare-bits.sh: LoRA, DoRA and QLoRA: training, merged, taken out again, evaluated, gone
# on from.
adapter_run() { # MODEL STAGE LORA QUANTIZATION OPTION…
    local model=$1 codes=
    [ ! "$4" ] || codes="\"quantization\": {$4},"
    ds "\"zero_optimization\": {\"stage\": $2}," "\"lora\": {$3}, $codes \"save_steps\": 2,"
    shift 4
    train out --model "$model" --data text "$@"
    text "$sifr" eval --model "$model" --adapter out --data held --seq-length 32 --threads 1 --json
    run "$sifr" merge "$model" out merged
    digest merged
    case $(cat ds.json) in *use_dora* | *'"bias"'* | *modules_to_save*) return ;; esac
    run "$sifr" unmerge merged out back
    digest back
}
further() { # from an adapter
    ds '' '"lora": {"r": 4},'
    run "$sifr" train --config ds.json --model untied --data text --output first --threads 1
    ds
    train out --model untied --data text --adapter first
}
nf4='"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"'
all='"r": 4, "lora_alpha": 8, "target_modules": "all-linear"'
while IFS='|' read -r what model stage ranks lora codes; do
    compare "$what, $model, stage $stage, $ranks ranks" adapter_run "$model" "$stage" "$lora" "$codes" \
        --ranks "$ranks"
done <<T
LoRA|untied|0|1|"r": 4|
LoRA|gpt2|3|2|"r": 4, "use_rslora": true|
LoRA, dropout|tied|0|1|$all, "lora_dropout": 0.2, "init_lora_weights": false|
LoRA, gaussian, patterns|untied|0|1|$all, "init_lora_weights": "gaussian", "rank_pattern": {"q_proj": 2}|
LoRA, saved modules|untied|0|1|"r": 4, "modules_to_save": ["norm"]|
LoRA, biases|gpt2|0|1|"r": 4, "bias": "lora_only"|
DoRA|untied|0|1|$all, "use_dora": true|
DoRA|gpt2|2|2|"r": 4, "use_dora": true|
QLoRA|untied|0|1|$all|$nf4
QLoRA, double|untied|3|2|$all|$nf4, "bnb_4bit_use_double_quant": true
QDoRA|untied|0|1|$all, "use_dora": true|$nf4
T
compare "LoRA in bf16" adapter_run untied 0 "$all" '' --bf16
compare "LoRA gone on from" further
