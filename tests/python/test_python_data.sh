# label: full
# timeout: 120
# The data of a config from Python, with the bits of the program; classes and scores. Without numpy.
. "$SOURCE/tests/support/python.sh"
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/small_llama.sh"
llama_model llama 32 2 false
head -c 3000 text >held
cat >ds.json <<'J'
{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
 "sifr": {"model": "llama", "data": ["text"], "seq_length": 32, "threads": 1}}
J
printf 'label\ttext\n1.5\ta day\n-2\tthe food\n0.25\ta red day\n3\tbad food\n' >numbers.tsv
expect 0 "$SIFR" train --config ds.json --output by_program --max-steps 4 --eval-data held --json
mv out outcome.json
classes="--seq-length 32 --max-steps 2"
printf 'label\ttext\nyes\ta day\nno\tthe food\nyes\ta red day\nno\tbad food\n' >rows.tsv
expect 0 "$SIFR" train --config ds.json --data rows.tsv --task sequence_classification $classes \
    --output classes
printf 'a day\nthe bad food\n' >lines
"$SIFR" classify --model classes --json <lines >classified.json 2>err || fail "$(cat err)"
printf 'the B\nfood I\n\na B\nday O\n\n' >words.conll
expect 0 "$SIFR" train --config ds.json --data words.conll --task token_classification $classes \
    --output tags
expect 0 "$SIFR" score --model llama --data held --seq-length 32 --top-k 4 --temperature 2 \
    --output scores.safetensors
python3 "$SOURCE/tests/python/python_data.py" || fail "from Python"
