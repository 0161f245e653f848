# shellcheck shell=bash
# Topic of compare-bits.sh: what generate, chat, eval, score and classify print and write.
generated() { # MODEL OPTION…
    text "$sifr" generate --threads 1 --max-new-tokens 24 --model "$@"
}
chatted() { # OPTION…
    printf 'a\n' >asked
    run sh -c 'f=$1; shift; "$f" chat untied --chat-template chatml --context 128 --max-new-tokens 8 --threads 1 "$@" <asked' \
        sh "$sifr" "$@"
    steady <printed
}
evaluated() { # OPTION…
    text "$sifr" eval --threads 1 --seq-length "${length:-32}" --json "$@"
}
scored() { # OPTION…
    run "$sifr" score --threads 1 --seq-length "${length:-32}" --output scores "$@"
    digest scores
}
printf 'The sea\na key\nbf16\n' >"$work/made/prompts"
for model in untied gpt2; do
    while IFS='|' read -r what options; do
        # shellcheck disable=SC2086 # several words
        compare "generate, $model, $what" generated $model $options
    done <<'T'
greedy|--prompt key
greedy, bf16|--prompt key --precision bf16
drawn|--prompt key --temperature 0.8 --top-k 20 --top-p 0.9 --seed 7
several samples|--prompts prompts --samples 3 --temperature 1 --min-p 0.02 --json
a batch|--prompts prompts --samples 2 --temperature 1.2 --batch-size 4
repetition, stop|--prompt key --repetition-penalty 1.3 --stop e
T
done
compare "generate, a chat" generated untied --chat --chat-template chatml --prompt "Say 2"
compare "chat, greedy" chatted --temperature 0
compare "chat, drawn" chatted --temperature 1 --seed 5 --system B
while IFS='|' read -r what options; do
    # shellcheck disable=SC2086 # several words
    compare "eval, $what" evaluated $options
done <<'T'
text|--model tied --data held
bf16, two windows|--model gpt2 --data held --precision bf16 --max-windows 2
a token store|--model untied --data store
masked words|--model bert --data text.txt
T
while IFS='|' read -r what options; do
    # shellcheck disable=SC2086 # several words
    compare "score, $what" scored $options
done <<'T'
text|--model tied --data held
pairs|--model gpt2 --data pairs.jsonl
likeliest words|--model untied --data completions.jsonl --top-k 5 --temperature 2
T
chats=(--model untied --data chats.jsonl --chat-template chatml)
length=96 compare "eval, conversations" evaluated "${chats[@]}"
length=96 compare "score, conversations, bf16" scored "${chats[@]}" --precision bf16
