# label: full
# A classifier on real ranks: the same weights, losses and scores at 1, 2 and 4 ranks, at ZeRO 0 and
# 3, and through a checkpoint of other ranks.
# timeout: 300, not under sanitizers (MPI keeps what it took)
. "$SOURCE/tests/support/ranks.sh"
tiny_model
awk 'BEGIN {
    print "premise,hypothesis,label"
    split("cat dog house", word, " ")
    for (i = 0; i < 50; i++) print "the " word[i % 3 + 1] " sat,my big " word[(i + int(i / 7)) % 3 + 1] "," i % 3
}' >pairs.csv
run() { # RANKS STAGE OUTPUT OPTION…
    local ranks=$1 stage=$2 output=$3
    shift 3
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "zero_optimization": {"stage": $stage},
 "sifr": {"task": "sequence_classification", "seq_length": 32, "max_steps": 12, "eval_steps": 6,
          "save_steps": 6, "eval_data": "pairs.csv", "threads": 1}}
J
    $launcher -n "$ranks" "$SIFR" train --config ds.json --model model --data pairs.csv \
        --output "$output" "$@" >out 2>err || fail "$ranks ranks at stage $stage"
}
run 1 0 one
grep -q 'eval_accuracy' one/metrics.jsonl || fail "no scores"
for ranks in 2 4; do
    for stage in 0 3; do
        run $ranks $stage "r$ranks-$stage"
        same "r$ranks-$stage" one
    done
done
cp -r r4-3 cut
rm -rf cut/checkpoint-12 cut/model.safetensors
echo checkpoint-6 >cut/latest
run 2 0 cut --resume
same cut one

# The config that people publish for DeBERTa, as it is.
cat >deberta.json <<'J'
{"model_type": "deberta-v2", "architectures": ["DebertaV2ForMaskedLM"], "vocab_size": 128,
 "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
 "max_position_embeddings": 64, "type_vocab_size": 0, "pad_token_id": 0, "relative_attention": true,
 "position_buckets": 16, "max_relative_positions": -1, "position_biased_input": false,
 "norm_rel_ebd": "layer_norm", "share_att_key": true, "pos_att_type": "p2c|c2p"}
J
"$SIFR" init --config deberta.json --tokenizer "$SOURCE/tests/golden/examples/wordpiece" \
    --output deberta --seed 3 >/dev/null
cat >published.json <<'J'
{"train_batch_size": 16, "gradient_accumulation_steps": 2, "fp16": {"enabled": true},
 "optimizer": {"type": "AdamW", "params": {"lr": 5e-5, "weight_decay": 0.1}},
 "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true},
   "overlap_comm": true, "contiguous_gradients": true}}
J
for ranks in 1 2 4; do
    $launcher -n $ranks "$SIFR" train --config published.json --model deberta --data pairs.csv \
        --eval-data pairs.csv --task sequence_classification --seq-length 32 --max-steps 12 \
        --output "deberta-$ranks" --threads 1 >out 2>err || fail "the published config on $ranks ranks"
    grep -q '"DebertaV2ForSequenceClassification"' "deberta-$ranks/config.json" ||
        fail "deberta on $ranks ranks: architectures"
    grep -q '"eval_accuracy":' "deberta-$ranks/metrics.jsonl" || fail "deberta on $ranks ranks: scores"
done

# Masked words, whose masks do not depend on who computes them.
awk 'BEGIN { for (i = 0; i < 40; i++) print "the river rose after the long rain. she reads." }' >words
masked() { # RANKS STAGE OUTPUT
    cat >ds.json <<J
{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "zero_optimization": {"stage": $2},
 "sifr": {"seq_length": 32, "max_steps": 6, "eval_data": "words", "threads": 1}}
J
    $launcher -n "$1" "$SIFR" train --config ds.json --model deberta --data words --output "$3" \
        >out 2>err || fail "masked words on $1 ranks at stage $2"
}
rm -rf one
masked 1 0 one
masked 2 3 masked-2
same masked-2 one
masked 4 3 masked-4
same masked-4 one
