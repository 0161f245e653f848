# Sourced by tests of preferences: TRL's five steps (golden/preference), over a copy of its model in
# model/ and of its pairs in pairs.jsonl, with the settings in ds.json.
golden=$SOURCE/tests/golden/preference
cp -r "$golden/model" model
cp "$golden/pairs.jsonl" .
cat >ds.json <<'J'
{"optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0}},
 "gradient_clipping": 1.0, "sifr": {"preference": {"beta": 0.5}, "max_steps": 5}}
J
compare() { # OUTPUT CASE [FILE STEPS]
    awk -v name="$2" -v steps="${4:-5}" '
        NR == FNR { if ($1 == name) want[$2, $3] = $4; next }
        /"loss":/ {
            step++
            for (k in want) {
                split(k, part, SUBSEP)
                if (part[1] != step) continue
                at = index($0, "\"" part[2] "\":")
                got = at ? substr($0, at + length(part[2]) + 3) + 0 : "missing"
                off = got - want[k]
                if (off < 0) off = -off
                if (at && off <= 2e-3 * (want[k] < 0 ? -want[k] : want[k]) + 2e-4) continue
                print "step " step ": " part[2] " is " got ", TRL has " want[k]
                bad = 1
            }
        }
        END { exit bad || step != steps }' "${3:-$golden/steps.txt}" "$1/metrics.jsonl" ||
        fail "$2 is not TRL's"
}
