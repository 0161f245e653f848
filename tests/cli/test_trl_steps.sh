# label: short
# Three steps as TRL 1.16's SFTTrainer, DPOTrainer and ORPOTrainer make them (golden/trl): rows whose
# prompts merge with what follows, answers of several turns, models with dropout, which TRL switches
# off. What sifr.preference.dropout does, and that a checkpoint remembers it.
# timeout: 200
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/trl_steps.sh"
trl=$SOURCE/tests/golden/trl
cp -r "$trl/gpt2" .
cp "$trl/chat_template.jinja" model/
sed 's/"max_steps": 5/"max_steps": 3/' ds.json >three.json
run() { # CODE OUTPUT MODEL ROWS OPTION…
    local code=$1 output=$2 model=$3 rows=$4
    shift 4
    expect "$code" "$SIFR" train --config three.json --model "$model" --data "$trl/$rows.jsonl" \
        --output "$output" --seq-length 96 --threads 1 --logging-steps 1 "$@"
}
dpo="--preference sigmoid --per-device-train-batch-size 16"
orpo="--preference orpo --per-device-train-batch-size 16"

# --- TRL's three steps ---
sed 's/"preference": {"beta": 0.5}, //' three.json >plain.json
for rows in text chat; do
    expect 0 "$SIFR" train --config plain.json --model model --data "$trl/$rows.jsonl" --output \
        sft_$rows --seq-length 96 --threads 1 --logging-steps 1 --per-device-train-batch-size 8
    compare sft_$rows sft_$rows "$trl/steps.txt" 3
    run 0 dpo_$rows model ${rows}_pairs $dpo
    compare dpo_$rows dpo_$rows "$trl/steps.txt" 3
    run 0 orpo_$rows model ${rows}_pairs $orpo
    compare orpo_$rows orpo_$rows "$trl/steps.txt" 3
done

# --- dropout ---
run 0 dpo_dropout gpt2 text_pairs $dpo --save-steps 2
grep -q "dropout is off, as by TRL 1.16's disable_dropout" out err || fail "dropout is off in silence"
compare dpo_dropout dpo_dropout "$trl/steps.txt" 3
grep -q '"resid_pdrop": *0.3' dpo_dropout/config.json || fail "the model's dropout is lost"
run 0 orpo_dropout gpt2 text_pairs $orpo
compare orpo_dropout orpo_dropout "$trl/steps.txt" 3
first_loss() { sed -n 's/.*"loss":\([0-9.e-]*\).*/\1/p' "$1/metrics.jsonl" | head -n 1; }
is_log_2() { awk -v loss="$(first_loss "$1")" 'BEGIN { exit !(loss > 0.69313 && loss < 0.69316) }'; }
adapters='{"r": 4, "lora_alpha": 8, "lora_dropout": 0.5, "target_modules": ["q_proj", "v_proj"]}'
run 0 adapters model text_pairs $dpo --lora "$adapters"
for output in dpo_text dpo_chat dpo_dropout adapters; do
    is_log_2 $output || fail "$output: the first loss is $(first_loss $output), not log 2"
done
grep -q '"lora_dropout": *0.5' adapters/adapter_config.json || fail "the adapters' dropout is lost"
run 0 dropped gpt2 text_pairs $dpo --preference-dropout
grep -q 'dropout is off' out err && fail "dropout is on, and said to be off"
is_log_2 dropped && fail "--preference-dropout: the first loss is log 2"
rm -rf dpo_dropout/checkpoint-3 dpo_dropout/model.safetensors
echo checkpoint-2 >dpo_dropout/latest
run 2 dpo_dropout gpt2 text_pairs $dpo --save-steps 2 --resume --preference-dropout
grep -q 'made with preference "sigmoid, beta 0.5, sifr.preference.dropout false"' err ||
    { cat err; fail "a checkpoint goes on with dropout"; }
run 0 dpo_dropout gpt2 text_pairs $dpo --save-steps 2 --resume
compare dpo_dropout dpo_dropout "$trl/steps.txt" 3
