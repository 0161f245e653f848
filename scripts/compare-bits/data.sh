# shellcheck shell=bash
# Topic of compare-bits.sh: rows of each form as a model reads them: text, tokens, what is learned and
# cut; token stores; what inspect shows.
seen() { # ROWS OPTION…
    # shellcheck disable=SC2059 # newlines are written as \n
    printf "$1" >rows.jsonl
    shift
    text "$sifr" data inspect --model untied --data rows.jsonl --color never --tokens "$@"
    text "$sifr" data inspect --model untied --data rows.jsonl --json "$@"
}
shown() { # PATH
    text "$sifr" inspect "$1"
    text "$sifr" inspect "$1" --json
}
while IFS='|' read -r rows options; do
    # shellcheck disable=SC2086 # several words
    compare "$rows $options" seen "$rows" $options
done <<'T'
{"text": "plain text"}\n{"text": "b"}\n|
{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n|--chat-template chatml
{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]}\n|--chat-template llama3 --train-on last
{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n|--chat-template chatml --train-on all --seq-length 20
{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}\n|--chat-template chatml
{"instruction": "Add", "input": "1 2", "output": "3"}\n{"instruction": "Go", "output": "gone"}\n|
{"prompt": "Say 2", "completion": " 2"}\n|
{"prompt": "Say 2", "completion": " 2"}\n|--train-on all --no-special-tokens
{"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "assistant", "content": "b"}]}\n|--chat-template chatml
{"question": "a?", "answer": "b"}\n|--data-fields prompt=question completion=answer
{"prompt": "Say 2", "chosen": " 2", "rejected": " 3"}\n|
{"chosen": "Say a: red", "rejected": "Say a: seven"}\n|
{"prompt": [{"role": "user", "content": "a"}], "chosen": [{"role": "assistant", "content": "b"}], "rejected": [{"role": "assistant", "content": "c"}]}\n|--chat-template chatml
{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "odd": 1}\n|--chat-template gemma --ignore-fields odd
T
for path in untied bert store untied/model.safetensors tok/tokenizer.json; do compare "inspect $path" shown $path; done
