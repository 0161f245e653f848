# Sourced by tests of the covering set: family x schedule x tier x optimizer, so that each two values
# meet. `sifr plan` and two steps of a run agree on each case: both refuse it, or both take the same
# memory. A plan that fits runs.
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/ranks.sh"
STORE_WORDS=23
. "$SOURCE/tests/support/small_store.sh"
. "$SOURCE/tests/support/words.sh"
golden=$SOURCE/tests/golden
families=()
for family in gemma gemma2 gemma3_text glm4 gpt_neox granite lfm2 ministral ministral3 mistral olmo2 \
    olmo3 phi3 qwen2 qwen3 qwen3_5_text smollm3 starcoder2; do
    families+=("$golden/families/models/$family")
done
families+=("$golden/models/gpt2" "$golden/models/llama3")
families+=("$golden/gemma4/models/gemma4_text")
for family in bert deberta deberta-plain deberta-tables distilbert modernbert roberta xlm-roberta; do
    families+=("$golden/encoders/models/$family")
done
for family in exaone4 cohere-norms; do families+=("$golden/dense/models/$family"); done
schedules=(none gpipe 1f1b interleaved zb-h1)
tiers=(memory optimizer parameters gradients activations all)
optimizers=(AdamW Adam SGD Adagrad Lion AdamWScheduleFree Adam8bit Lamb Muon Adafactor momentum)
declare -A met # pairs of values that came up

write_config() { # SCHEDULE TIER OPTIMIZER
    local stage=2 disk='{"device": "nvme", "nvme_path": "disk"}' zero= sifr= pipeline= more=
    case $3 in
    Adafactor) more=', "relative_step": false, "scale_parameter": false' ;;
    momentum) more=', "momentum": 0.9' ;;
    esac
    case $2 in
    optimizer) zero=", \"offload_optimizer\": $disk" ;;
    parameters) stage=3 zero=", \"offload_param\": $disk" ;;
    gradients) sifr=', "offload_gradients": "nvme", "nvme_path": "disk"' ;;
    activations) sifr=', "offload_activations": "nvme", "nvme_path": "disk"' ;;
    all)
        stage=3 zero=", \"offload_optimizer\": $disk, \"offload_param\": $disk"
        sifr=', "offload_gradients": "nvme", "offload_activations": "nvme", "nvme_path": "disk", "step_order": "auto"'
        ;;
    esac
    [ "$1" = none ] || pipeline="\"pipeline\": {\"stages\": 2, \"schedule\": \"$1\"},"
    cat >ds.json <<J
{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "gradient_clipping": 1.0,
 "optimizer": {"type": "${3/momentum/SGD}", "params": {"lr": 1e-3$more}}, $pipeline
 "zero_optimization": {"stage": $stage$zero},
 "sifr": {"seq_length": 24, "max_steps": 2, "threads": 1$sifr}}
J
}

cover() { # FAMILY SCHEDULE TIER OPTIMIZER, as indices
    local folder=${families[$1]} data=store planned=0 ran=0 takes took
    local case="$(basename "${families[$1]}") ${schedules[$2]} ${tiers[$3]} ${optimizers[$4]}"
    met[schedule $1 $2]=1 met[tier $1 $3]=1 met[optimizer $1 $4]=1
    met[schedule-tier $2 $3]=1 met[schedule-optimizer $2 $4]=1 met[tier-optimizer $3 $4]=1
    write_config ${schedules[$2]} ${tiers[$3]} ${optimizers[$4]}
    case $folder in
    */encoders/*)
        rm -rf model && cp -r "$folder" model && chmod -R u+w model
        tokenizer model
        folder=model data=text.txt
        ;;
    esac
    "$SIFR" plan --config ds.json --model "$folder" --ranks 2 >plan 2>plan.err || planned=$?
    rm -rf run
    "$SIFR" train --config ds.json --model "$folder" --data $data --ranks 2 --output run >log 2>&1 ||
        ran=$?
    [ $planned = $ran ] || fail "$case: the plan ends with $planned ($(tail -n 1 plan.err)), the run with $ran: $(cat log)"
    cases=$((cases + 1))
    if [ $ran = 2 ]; then
        local why=$(sed -n 's/^sifr plan: //p' plan.err)
        grep -qF "$why" log || fail "$case: the plan says '$why', the run: $(cat log)"
        refused=$((refused + 1))
        return
    fi
    [ $ran = 0 ] || fail "$case: $(cat log)"
    takes=$(sed -n 's/^It fits: a rank takes \([0-9.]* [KMG]*i*B\),.*/\1/p' plan)
    took=$(sed -n 's/.*memory \([0-9.]* [KMG]*i*B\) planned,.*/\1/p' log)
    [ "$takes" = "$took" ] || fail "$case: planned ${takes:-nothing that fits}, the run takes $took"
}
mkdir disk
cases=0 refused=0
