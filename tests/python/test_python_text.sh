# label: full
# timeout: 120
# Tokenizers, generation and chats from Python give what the program gives.
. "$SOURCE/tests/support/python.sh"
. "$SOURCE/tests/support/expect.sh"
gpt2=$SOURCE/tests/golden/models/gpt2
expect 0 "$SIFR" generate --model "$gpt2" --prompt 'The sea' --max-new-tokens 12
mv out by_program.txt
expect 0 "$SIFR" generate --model "$gpt2" --prompt 'The sea' --max-new-tokens 8 --samples 2 \
    --temperature 0.8 --seed 5 --json
mv out by_program.json
GPT2=$gpt2 python3 "$SOURCE/tests/python/python_text.py" || fail "from Python"
