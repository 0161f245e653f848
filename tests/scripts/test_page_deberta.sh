# label: short
# docs/classify-with-deberta.md, with a model of two small layers.
# timeout: 300
. "$SOURCE/tests/support/page.sh"
cat >tiny.json <<'J'
{"model_type": "deberta-v2", "architectures": ["DebertaV2ForMaskedLM"], "vocab_size": 120,
 "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
 "max_position_embeddings": 64, "relative_attention": true, "position_buckets": 8,
 "pos_att_type": "c2p|p2c", "share_att_key": true, "norm_rel_ebd": "layer_norm",
 "position_biased_input": false, "max_relative_positions": -1, "type_vocab_size": 0}
J
"$SIFR" init --config tiny.json --tokenizer "$SOURCE/tests/golden/examples/wordpiece" \
    --output deberta-v3-base --seed 3 >/dev/null
page classify-with-deberta
