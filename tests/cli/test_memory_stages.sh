# Promise 2 in pipeline stages: a run with evaluations takes what its plan says on every stage, also
# where a stage's step leaves less idle than its part of an evaluation takes: frozen embeddings alone,
# beside a head whose logits are more than all else.
# label: full; timeout: 240, not under sanitizers
. "$SOURCE/tests/support/ranks.sh"

head -c 40000 "$SOURCE/docs/config.md" >text.txt
cat >config.json <<J
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 65536,
 "hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 4,
 "intermediate_size": 256, "max_position_embeddings": 512, "tie_word_embeddings": true}
J
"$SIFR" tokenizer train --vocab-size 1024 --data text.txt --output tokenizer >log 2>&1
"$SIFR" init --config config.json --tokenizer tokenizer --output model >log 2>&1
cat >ds.json <<J
{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "bf16": {"enabled": true},
 "pipeline": {"stages": 2, "partition": "parameters"},
 "sifr": {"seq_length": 512, "max_steps": 3, "freeze": "*embed*", "eval_steps": 1, "max_eval_windows": 4}}
J

number() { # KEY FILE: the first number of a member of that name
    sed -n "s/^ *\"$1\": \([0-9]*\).*/\1/p" "$2" | head -n 1
}

# Bytes of each rank, a line "STAGE BYTES": its own memory and its share of shared windows, at most,
# between the first step's end and the model's file.
watch() { # LAUNCHER
    : >looks
    while kill -0 $1 2>/dev/null && [ ! -e out/model.safetensors ]; do
        if [ "$( (cat out/metrics.csv 2>/dev/null || :) | wc -l)" -gt 1 ]; then
            for process in $(pgrep -f "output $PWD/out" || :); do
                rank=$(tr '\0' '\n' 2>/dev/null <"/proc/$process/environ" |
                    sed -nE 's/^(OMPI_COMM_WORLD_RANK|PMI_RANK)=//p' | head -n 1) || :
                [ -n "$rank" ] || continue
                awk -v rank=$rank '/^Pss_Anon:/ { own = $2 } /^Pss_Shmem:/ { print rank, 1024 * (own + $2) }' \
                    /proc/$process/smaps_rollup 2>/dev/null >look || :
                [ -e out/model.safetensors ] || cat look >>looks
            done
        fi
        sleep 0.02
    done
    awk '$2 > most[$1] { most[$1] = $2 } END { for (rank in most) print rank, most[rank] }' looks
}

"$SIFR" train --config ds.json --model model --data text.txt --eval-data text.txt --ranks 2 \
    --threads 1 --output "$PWD/out" --json >train.json 2>log &
launcher=$!
watch $launcher >measured
wait $launcher || fail "train: $(cat log)"
baseline=$(number baseline_bytes train.json)
[ "$(wc -l <measured)" -eq 2 ] || fail "not all ranks were seen: $(cat measured)"
for stage in 0 1; do
    "$SIFR" plan --config ds.json --model model --world-size 2 --rank $stage --threads 1 --json >plan.json
    planned=$(number peak_bytes plan.json)
    value=$(($(sed -n "s/^$stage //p" measured) - baseline))
    echo "stage $stage: planned $planned + $baseline, measured $value"
    slack=$((planned / 50))
    [ $slack -gt $((4 << 20)) ] || slack=$((4 << 20))
    [ $value -le $((planned + slack)) ] ||
        fail "stage $stage: planned $planned, measured $value without the program's $baseline"
done
[ $planned -gt 100000000 ] || fail "the head is too small to compare anything: $planned"
