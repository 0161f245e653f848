# shellcheck shell=bash
# Topic of compare-bits.sh: the config that import makes of each file of the tests' cases, its report,
# and what train --dry-run says of each DeepSpeed config.
imported() { # FILE
    cp "$1" .
    says "$sifr" import --config "${1##*/}" ds.json
    [ ! -e ds.json ] || digest ds.json
}
explained() { # CONFIG
    cp "$1" ds.json
    says "$sifr" train --config ds.json --dry-run=all
}
for folder in "$tree"/tests/config/imports "$tree"/tests/config/real; do
    for file in "$folder"/*; do
        compare "${folder##*/}/${file##*/}" imported "$file"
    done
done
for file in "$tree"/examples/ds_config_*.json; do compare "dry run, ${file##*/}" explained "$file"; done
