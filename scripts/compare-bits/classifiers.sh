# shellcheck shell=bash
# Topic of compare-bits.sh: labels of sequences (one, several, numbers) and of tokens, over a decoder
# and encoders; what eval and classify say with what was trained.
classifier_run() { # ANSWERS MODEL DATA OPTION…
    local answers=$1 model=$2 data=$3
    shift 3
    steps=6 ds '"zero_optimization": {"stage": '"${stage:-0}"'},' '"save_steps": 3,'
    train out --model "$model" --data "$data" --eval-data "$data" "$@"
    text "$sifr" eval --model out --data "$data" --seq-length 32 --json --threads 1
    [ "$answers" = '' ] || text "$sifr" classify --model out --data "$data" --json --threads 1
    [ "$answers" ] || text words_of "$sifr" classify --model out --threads 1
}
words_of() { printf 't r b f\nr b\n' | "$@"; }
for model in untied bert deberta; do
    while IFS='|' read -r what answers data options; do
        # shellcheck disable=SC2086 # several words
        compare "$model, $what" classifier_run "$answers" $model $data $options
    done <<'T'
one label of two texts|rows|twos.tsv|--task sequence_classification
several labels|rows|several.jsonl|--task sequence_classification --problem-type multi_label_classification
numbers|rows|numbers.csv|--task sequence_classification --problem-type regression
tags||tags.conll|--task token_classification
T
done
stage=3 compare "bert, one label, stage 3, 2 ranks" classifier_run rows bert twos.tsv \
    --task sequence_classification --ranks 2
stage=2 compare "untied, tags, stage 2, 2 ranks" classifier_run '' untied tags.conll \
    --task token_classification --ranks 2
