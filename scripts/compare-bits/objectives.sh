# shellcheck shell=bash
# Topic of compare-bits.sh: what is learned: text, rows of each form, preferences, another model,
# masked words; each also on two ranks at stage 3, and on from BASE's checkpoint.
objective_run() { # MEMBERS_OF_sifr MODEL OPTION…
    local more=$1 model=$2
    shift 2
    ds '"zero_optimization": {"stage": '"${stage:-0}"'},' "$more"
    train out --model "$model" "$@"
}
# each WHAT MEMBERS_OF_sifr MODEL OPTION…
each() {
    local what=$1
    shift
    compare "$what" objective_run "$@"
    stage=3 compare "$what, stage 3, 2 ranks" objective_run "$@" --ranks 2
    compare "$what, resumed" on_from "$@"
}
on_from() { # as objective_run: a checkpoint that BASE's program made, and the steps behind it
    local more=$1 model=$2
    shift 2
    ds '' "$more \"save_steps\": 2,"
    run "$old" train --config ds.json --threads 1 --output out --model "$model" "$@"
    rm -r out/checkpoint-3
    rm out/*.safetensors
    echo checkpoint-2 >out/latest
    train out --model "$model" "$@" --resume
}
chat=(--data chats.jsonl --chat-template chatml --seq-length 96) text=(--data text --eval-data held)
each text '"max_eval_windows": 4, "eval_steps": 2,' gpt2 "${text[@]}"
each conversations '' untied "${chat[@]}" --eval-data chats.jsonl
compare "conversations, packed" objective_run '"packing": true,' tied "${chat[@]}"
compare "conversations, by length" objective_run '"group_by_length": true,' gpt2 "${chat[@]}"
compare "last turns" objective_run '"train_on": "last",' untied "${chat[@]}" --chat-template llama3
compare completions objective_run '"validation_split": 4,' untied --data completions.jsonl
compare "two sources" objective_run '"dataset": [{"path": "completions.jsonl", "weight": 2},
    {"path": "chats.jsonl"}], "chat_template": "chatml",' untied --seq-length 96
for loss in sigmoid hinge ipo orpo; do
    each "preference $loss" "\"preference\": {\"loss_type\": \"$loss\"}," gpt2 --data pairs.jsonl \
        --per-device-train-batch-size 2 --eval-data pairs.jsonl
done
compare "preference with dropout" objective_run '"preference": {"loss_type": "ipo", "dropout": true, "beta": 0.3},' \
    gpt2 --data pairs.jsonl --per-device-train-batch-size 2
from_file() { # LOSS
    run "$sifr" score --model tied --data pairs.jsonl --seq-length 32 --output reference --threads 1
    digest reference
    objective_run "\"preference\": {\"loss_type\": \"$1\", \"reference\": \"reference\"}," untied \
        --data pairs.jsonl --per-device-train-batch-size 2
}
compare "preference, reference from a file" from_file sigmoid
for k in 4 300; do
    each "distillation, $k words" "\"distill\": {\"scores\": \"top-$k\", \"weight\": 0.7}," untied \
        --data completions.jsonl --eval-data completions.jsonl
done
compare "distillation alone, no cross entropy" objective_run \
    '"distill": {"scores": "top-4", "weight": 1},' gpt2 --data completions.jsonl
each "masked words, bert" '' bert --data text.txt --eval-data text.txt
compare "masked words, deberta, more of them" objective_run '"mlm_probability": 0.4,' deberta --data text.txt
