# shellcheck shell=bash
# Topic of compare-bits.sh: each architecture, from the small folders of the tests: two steps in bf16,
# recomputed, and a text.
family_run() { # MODEL KIND
    steps=2 length=24 ds '"bf16": {"enabled": true},'
    if [ "$2" = encoder ]; then
        cp -rL "$1" copy
        chmod -R u+w copy
        tokenizer copy
        run "$sifr" train --config ds.json --threads 1 --output out --model copy --data text.txt \
            --recompute unit
    else
        run "$sifr" train --config ds.json --threads 1 --output out --model "$1" --data small \
            --recompute unit
    fi
    digest out
}
(
    mkdir "$work/small" && cd "$work/small" || exit
    # shellcheck source-path=SCRIPTDIR/../.. source=tests/support/small_store.sh
    . "$tree/tests/support/small_store.sh"
    for kind in bin idx; do mv store.$kind "$work/made/small.$kind"; done
)
for folder in "$tree"/tests/golden/families/models/* "$tree"/tests/golden/models/*; do
    [ -e "$folder/model.safetensors" ] || continue
    compare "${folder##*/}" family_run "$folder" decoder
done
for folder in "$tree"/tests/golden/encoders/models/*; do
    case $folder in *-mean | *-sequence | *-tokens | *-regression | *-multilabel) continue ;; esac
    compare "${folder##*/}" family_run "$folder" encoder
done
