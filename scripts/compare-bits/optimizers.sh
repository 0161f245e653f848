# shellcheck shell=bash
# Topic of compare-bits.sh: every optimizer, its states in 16 bits and on two ranks; schedules of the
# rate; rates of single weights, averages, loss scales, dropout.
optimizer_run() { # OPTIMIZER MEMBERS MEMBERS_OF_sifr OPTION…
    local optimizer=$1 members=$2 more=$3
    shift 3
    ds "$members" "$more" "$optimizer"
    train out --model untied --data store "$@"
}
optimizer() { # TYPE PARAMS
    echo "{\"type\": \"$1\", \"params\": {$2}}"
}
fixed='"lr": 1e-3, "relative_step": false, "scale_parameter": false'
while IFS='|' read -r type params; do
    compare "$type $params" optimizer_run "$(optimizer "$type" "$params")" '' ''
    compare "$type $params, stage 2, 2 ranks, bf16" optimizer_run "$(optimizer "$type" "$params")" \
        '"bf16": {"enabled": true}, "zero_optimization": {"stage": 2},' '' --ranks 2
done <<T
AdamW|"lr": 3e-3, "weight_decay": 0.1
AdamW|"lr": 3e-3, "amsgrad": true
Adam|"lr": 3e-3, "weight_decay": 0.1, "adam_w_mode": false
SGD|"lr": 0.1
SGD|"lr": 0.1, "momentum": 0.9, "nesterov": true
Adagrad|"lr": 1e-2, "lr_decay": 0.1
Lion|"lr": 3e-4, "weight_decay": 0.1
Lamb|"lr": 3e-3, "weight_decay": 0.1
Muon|"lr": 2e-2, "weight_decay": 0.1
Muon|"muon_lr": 2e-2, "adam_lr": 3e-3, "ns_method": "gram"
Adafactor|$fixed
Adafactor|$fixed, "beta1": 0.9
Adafactor|"relative_step": true, "warmup_init": true
AdamWScheduleFree|"lr": 3e-3, "warmup_steps": 2
AdamW8bit|"lr": 3e-3, "min_8bit_size": 1000
Adam8bit|"lr": 3e-3
T
while IFS='|' read -r what members more; do
    compare "$what" optimizer_run "$adam" "$members" "$more"
done <<'T'
states in bf16|"bf16": {"enabled": true, "bf16_optimizer_states": true}, "zero_optimization": {"stage": 2},|
no decay, decay by layer, groups||"no_decay": "transformers", "layer_decay": 0.8, "groups": [{"match": "*embed*", "lr": 1e-3}],
frozen||"freeze": ["*embed*", "*.0.*"],
average of the weights||"ema": {"decay": 0.9},
WarmupDecayLR|"scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 2, "total_num_steps": 3}},|
WarmupCosineLR|"scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 2, "total_num_steps": 3}},|
OneCycle|"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-4, "cycle_max_lr": 3e-3, "cycle_first_step_size": 2}},|
LRRangeTest|"scheduler": {"type": "LRRangeTest", "params": {"lr_range_test_min_lr": 1e-4, "lr_range_test_step_size": 2}},|
loss scale|"fp16": {"enabled": true, "initial_scale_power": 20},|
T
for kind in linear cosine polynomial constant_with_warmup inverse_sqrt cosine_with_min_lr; do
    more=
    [ $kind != cosine_with_min_lr ] || more='"lr_scheduler_kwargs": {"min_lr_rate": 0.1},'
    compare "rate: $kind" optimizer_run "$adam" '' "$more" --lr-scheduler-type $kind --warmup-ratio 0.4
done
