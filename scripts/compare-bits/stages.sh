# shellcheck shell=bash
# Topic of compare-bits.sh: pipeline stages under each schedule and cut, shard groups, both at once,
# and what goes through stages beside text.
stage_run() { # MEMBERS_OF_pipeline ZERO MEMBERS_OF_sifr RANKS OPTION…
    batch=8 ds "\"zero_optimization\": {\"stage\": $2}, $([ ! "$1" ] || echo "\"pipeline\": {$1},")" "$3"
    local ranks=$4
    shift 4
    train out --ranks "$ranks" "$@"
}
while IFS='|' read -r schedule zero more ranks model; do
    compare "$schedule $more, ZeRO $zero, $ranks ranks, $model" stage_run "$schedule" "$zero" "$more" \
        "$ranks" --model "$model" --data store
done <<'T'
"stages": 2, "schedule": "gpipe"|0||2|tied
"stages": 2, "schedule": "1f1b"|0||2|untied
"stages": 2, "schedule": "1f1b"|3||4|tied
"stages": 4, "schedule": "1f1b"|0||4|gpt2
"stages": 2, "schedule": "interleaved", "chunks": 2|0||2|untied
"stages": 2, "schedule": "interleaved", "chunks": 2|2||4|tied
"stages": 2, "schedule": "zb-h1"|0||2|tied
"stages": 2, "schedule": "zb-h1"|3||4|untied
"stages": 2, "partition": "uniform"|1||2|untied
"stages": 2, "partition": "parameters"|0||2|tied
"stages": 2, "partition": "type:layers"|0||2|tied
"stages": 2, "activation_checkpoint_interval": 1|2||4|gpt2
|3|"shard_size": 2,|4|tied
|2|"shard_size": 2, "step_order": "batch",|4|untied
|1|"shard_size": 2,|8|gpt2
"stages": 2|3|"shard_size": 2,|8|tied
T
pairs=(--data pairs.jsonl --per-device-train-batch-size 2)
two='"stages": 2'
compare "preferences through stages" stage_run "$two" 1 '"preference": {"loss_type": "sigmoid"},' 2 \
    --model untied "${pairs[@]}"
compare "masked words through stages" stage_run "$two" 0 '' 2 --model deberta --data text.txt
compare "labels through stages" stage_run "$two" 0 '"task": "sequence_classification",' 2 --model bert \
    --data twos.tsv --eval-data twos.tsv
compare "LoRA through stages" stage_run "$two" 0 '"lora": {"r": 4},' 2 --model untied --data text
compare "Lamb through stages" stage_run "$two" 2 '"ema": {"decay": 0.9},' 4 --model tied --data store
