# `sifr chat` and `sifr generate --chat`: the prompt is what the model's template makes of the
# messages, and a conversation goes on as if each turn were computed anew.
. "$SOURCE/tests/support/expect.sh"
says() { grep -qE -- "$1" out || { cat out; fail "no line like: $1"; }; }
complains() { grep -qE -- "$1" err || { cat err; fail "no error like: $1"; }; }
one_line() { [ "$(wc -l <err)" = 1 ] || { cat err; fail "an error is one line"; }; }

cp -r "$SOURCE/tests/golden/models/llama3" model
chmod -R u+w model
cat >model/chat_template.jinja <<'END'
{{- bos_token }}
{%- for m in messages %}
    {{- '<' ~ m.role ~ '>' ~ m.content | trim ~ '</' ~ m.role ~ '>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<assistant>' }}
{%- endif %}
END
printf '{"bos_token": {"content": "<|endoftext|>"}}' >model/tokenizer_config.json

ids() { sed -n "/\"$1\"/,/]/p" out | tr -dc '0-9 ' ; }
plain() { # RENDERED ARGUMENT…: what a prompt gives that is already rendered
    expect 0 "$SIFR" generate --model model --no-special-tokens --max-new-tokens 8 --prompt "$@"
}

# --- generate --chat ---
rendered='<|endoftext|><user>hills in the</user>
<assistant>'
plain "$rendered" --json
prompt=$(ids prompt_ids)
made=$(ids ids)
expect 0 "$SIFR" generate --model model --chat --prompt '  hills in the ' --max-new-tokens 8 --json
[ "$(ids prompt_ids)" = "$prompt" ] || fail "other ids than those of the rendered text"
[ "$(ids ids)" = "$made" ] || fail "another continuation"
[ "$(echo "$prompt" | awk '{ print $1 }')" = 0 ] || fail "no begin-of-text token"
expect 0 "$SIFR" generate --model model --chat --prompt 'hills in the' --max-new-tokens 8
cp out first
plain "$rendered"
[ "$(cat out)" = "$rendered$(cat first)" ] || fail "another answer on the terminal"

# --- a conversation of two turns ---
printf 'hills in the\n\nA few\n' >lines
chat() { "$SIFR" chat model --max-new-tokens 8 "$@"; }
expect 0 chat <lines
[ "$(head -c "$(wc -c <first)" out)" = "$(cat first)" ] || fail "the first answer differs"
tail -c +$(($(wc -c <first) + 1)) out >second
answer=$(sed -e 's/^[[:space:]]*//' -e 's/[[:space:]]*$//' first)
both="${rendered}${answer}</assistant>
<user>A few</user>
<assistant>"
plain "$both"
[ "$(cat out)" = "$both$(cat second)" ] || fail "the second answer is not that of the whole text"

# The system message, the same flags, and no last newline.
printf 'hills' >lines
expect 0 chat --system 'Be  kind. ' <lines
cp out answer
system='<|endoftext|><system>Be  kind.</system>
<user>hills</user>
<assistant>'
plain "$system"
[ "$(cat out)" = "$system$(cat answer)" ] || fail "the system message"
expect 0 chat --seed 3 --temperature 2 <lines
cp out drawn
expect 0 chat --seed 3 --temperature 2 <lines
cmp -s out drawn || fail "a seed does not repeat itself"
cmp -s out answer && fail "nothing is drawn"
expect 0 "$SIFR" chat --model model --max-new-tokens 0 <lines
[ "$(wc -l <out)" = 1 ] || fail "an answer of no tokens is an empty line"
expect 0 "$SIFR" chat model </dev/null
[ ! -s out ] || fail "an answer to nobody"

# --- functions for the template ---
cp -r model calls
cat >calls/chat_template.jinja <<'END'
{%- for t in tools or [] %}{{ t.function.name ~ '(' ~ (t.function.parameters | tojson) ~ ') ' }}{% endfor %}
{%- for m in messages %}{{ m.content }}{% endfor %}
END
echo '[{"function": {"name": "hills", "parameters": {"in": "the"}}}]' >tools.json
expect 0 "$SIFR" generate --model calls --no-special-tokens --max-new-tokens 8 --json \
    --prompt 'hills({"in": "the"}) A few'
prompt=$(ids prompt_ids)
expect 0 "$SIFR" generate --model calls --chat --tools tools.json --prompt 'A few' \
    --max-new-tokens 8 --json
[ "$(ids prompt_ids)" = "$prompt" ] || fail "the functions are not in the prompt"
echo 'A few' >lines
expect 0 "$SIFR" chat calls --tools tools.json --max-new-tokens 8 <lines
cp out with
expect 0 "$SIFR" chat calls --max-new-tokens 8 <lines
cmp -s out with && fail "a chat does not give the template its functions"
echo '{}' >wrong.json
expect 2 "$SIFR" chat calls --tools wrong.json <lines
complains '^sifr chat: --tools wrong.json: must be an array'
expect 1 "$SIFR" chat calls --tools nowhere.json <lines
expect 2 "$SIFR" generate --model calls --tools tools.json --prompt a
complains 'acts with --chat alone'

# --- what cannot be ---
printf 'hills' >lines
expect 2 "$SIFR" chat "$SOURCE/tests/golden/models/llama3" <lines
one_line
complains '^sifr chat: .*llama3 has no chat template \(chat_template.jinja, or "chat_template" in'
complains 'use `sifr generate` without --chat$'
expect 2 "$SIFR" generate --chat --model "$SOURCE/tests/golden/models/llama3" --prompt a
complains 'has no chat template'
expect 2 chat --context 8 <lines
one_line
complains 'the conversation has [0-9]+ tokens, but the context has room for 8; .*--context'
expect 2 chat --context 1 <lines
complains '--context 1: must be in 2'
expect 2 "$SIFR" chat <lines
complains 'give one model: `sifr chat DIR`'
expect 2 "$SIFR" chat model model <lines
expect 1 chat < <(printf 'a\377b\n')
complains "the user's message is not valid UTF-8"
printf '{{ raise_exception("only " ~ messages[0].role ~ "s") }}' >model/chat_template.jinja
expect 2 chat <lines
one_line
complains '^sifr chat: model/chat_template.jinja, line 1: the template refuses.*: only users$'
printf 'a\n{%% for m in messages %%}\n{{ m | urlize }}{%% endfor %%}' >model/chat_template.jinja
expect 2 chat <lines
complains 'model/chat_template.jinja, line 3: not supported yet: the filter "urlize"$'
