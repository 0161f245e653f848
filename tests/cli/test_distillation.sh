# label: short
# Distillation as a user does it: five steps of PyTorch's (golden/distillation) from PyTorch's file of
# scores and from those of `sifr score`, a temperature that is not the file's, and files that do not
# fit.
# timeout: 300
. "$SOURCE/tests/support/expect.sh"
sifr() { "$SIFR" "$@"; }
complains() { grep -qF "$1" err || { cat err; fail "no '$1'"; }; }
golden=$SOURCE/tests/golden/distillation
cp -r "$SOURCE/tests/golden/preference/model" teacher
cp -r teacher student
cp "$golden/student.safetensors" student/model.safetensors
cp "$golden/rows.jsonl" .
score() { # FILE OPTION…
    local file=$1
    shift
    expect 0 sifr score --model teacher --data rows.jsonl --seq-length 48 --output "$file" \
        --precision fp32 --threads 1 "$@"
}
run() { # CODE OUTPUT OPTION…
    local code=$1 output=$2
    shift 2
    rm -rf "$output"
    expect "$code" sifr train --model student --output "$output" --seq-length 48 --threads 1 \
        --data rows.jsonl --config ds.json --logging-steps 1 "$@"
}
cat >ds.json <<'J'
{"optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0}},
 "gradient_clipping": 1.0, "train_micro_batch_size_per_gpu": 4, "sifr": {"max_steps": 5}}
J

# --- PyTorch's five steps ---
compare() { # OUTPUT CASE
    awk -v name="$2" '
        NR == FNR { if ($1 == name && $2 > 0) want[$2, $3] = $4; next }
        /"loss":/ {
            step++
            for (k in want) {
                split(k, part, SUBSEP)
                if (part[1] != step) continue
                at = index($0, "\"" part[2] "\":")
                got = at ? substr($0, at + length(part[2]) + 3) + 0 : "missing"
                off = got - want[k]
                if (off < 0) off = -off
                compared++
                if (at && off <= 1e-5 * want[k]) continue
                print "step " step ": " part[2] " is " got ", PyTorch has " want[k]
                bad = 1
            }
        }
        END { exit bad || step != 5 || compared != 10 }' "$golden/steps.txt" "$1/metrics.jsonl" ||
        fail "$1 is not PyTorch's $2"
}
run 0 given --distill "$golden/scores.safetensors"
compare given given
score own.safetensors --top-k 8 --temperature 2
score own.safetensors --top-k 8 --temperature 2 # over its own file
cp rows.jsonl before
expect 2 sifr score --model teacher --data rows.jsonl --seq-length 48 --output rows.jsonl
grep -q -- '--output rows.jsonl: the file exists and holds no scores; name another' err || fail "$(cat err)"
cmp rows.jsonl before || fail "the data are replaced"
run 0 own --distill own.safetensors --distill-weight 0.5 --distill-temperature 2
compare own given
score few.safetensors --top-k 2 --temperature 1.5
run 0 few --distill few.safetensors --distill-weight 1 --preference-beta 0.4
compare few few
grep -qhF -e '--preference-beta 0.4: no effect, since sifr.preference.loss_type is "none"' out err ||
    fail "a key of another objective is dropped in silence"
run 2 masked --mlm-probability 0.9
complains "mlm_probability is of text for masked_lm, not for causal_lm; leave it out"
score whole.safetensors --top-k 400
run 0 whole --distill whole.safetensors --distill-weight 0.7
compare whole whole

# The same ids in both files, at their ends, and the same shapes at their beginnings.
labels=$(awk '$3 == "labels" { print $4 }' "$golden/steps.txt")
for file in own.safetensors "$golden/scores.safetensors"; do
    tail -c $((labels * 4 * 9)) "$file" | sha256sum
done | uniq -c | grep -q '^ *2 ' || fail "other words are likeliest"

# Micro batches of one row are the same steps.
run 0 parts --distill own.safetensors --per-device-train-batch-size 1 \
    --gradient-accumulation-steps 4
compare parts given

# A config's sources, whose fields have other names, and its length.
sed 's/"prompt"/"question"/; s/"completion"/"answer"/' rows.jsonl >asked.jsonl
cat >sources.json <<'J'
{"optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0}},
 "gradient_clipping": 1.0, "train_micro_batch_size_per_gpu": 4,
 "sifr": {"max_steps": 5, "seq_length": 48, "dataset": [{"path": "asked.jsonl",
  "fields": {"prompt": "question", "completion": "answer"}}]}}
J
expect 0 sifr score --model teacher --config sources.json --output asked.safetensors --top-k 8 \
    --temperature 2 --precision fp32 --threads 1
cmp asked.safetensors own.safetensors || fail "the scores of a config's data are others"
expect 0 sifr train --model student --config sources.json --distill asked.safetensors \
    --output asked --threads 1 --logging-steps 1
compare asked given
expect 2 sifr score --model teacher --output none.safetensors
complains 'PATH is needed, or --config with sifr.data'

# --- what is refused ---
run 2 refused --distill own.safetensors --preference sigmoid
complains "preference and distill are both given"
run 2 refused --distill own.safetensors --distill-temperature 3
complains 'temperature 3, but own.safetensors is of 2'
score plain.safetensors
run 1 refused --distill plain.safetensors
complains 'it has no top words'
head -n 3 rows.jsonl >three.jsonl
expect 0 sifr score --model teacher --data three.jsonl --seq-length 48 --top-k 4 \
    --output three.safetensors
run 1 refused --distill three.safetensors
complains 'scores of 3 rows, but the data have 4'
sed 's/ red/ tan/' rows.jsonl >others.jsonl
expect 0 sifr score --model teacher --data others.jsonl --seq-length 48 --top-k 4 \
    --output others.safetensors
run 1 refused --distill others.safetensors
complains 'are of other tokens'
# Two words of probability 1.
head=$(($(od -An -tu8 -N8 few.safetensors) + 8))
tops=$(head -c "$head" few.safetensors | grep -ao '"top_logprobs":[^}]*' | sed 's/.*\[\([0-9]*\),[0-9]*\]$/\1/')
cp few.safetensors sure.safetensors
dd if=/dev/zero of=sure.safetensors bs=1 count=8 seek=$((head + tops)) conv=notrunc status=none
run 1 refused --distill sure.safetensors
complains 'the top words of a token are likelier than all words'
run 1 refused --distill student/model.safetensors
complains 'no file of scores'
