# Rows of a hostile user, through the program: one line with file, row and field, the exit code of
# wrong data, no crash, bounded memory and time; --skip-bad-rows counts them and goes on. Parts of
# this at their rooms: tests/formats/test_records*.c, test_template_hostile.c.
# timeout: 300, not under sanitizers (limits of memory)
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/chats.sh"
chat_model model llama LlamaForCausalLM true
complains() { [ "$(grep -vc 'warning: data: ' err)" = 1 ] || { cat err; fail "more than a line"; }; tail -n 1 err | grep -qF -e "$1" || { cat err; fail "no '$1'"; }; }
warns() { grep -qF -e "$1" err || { cat err; fail "no '$1'"; }; }
inspect() { expect "$1" "$SIFR" data inspect --model "${model:-model}" --samples 0 --seq-length 64 "${@:2}"; }
good='{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}'

# --- one bad row between two good ones ---
bad() { # MESSAGE ROW
    printf '%s\n%b\n%s\n' "$good" "$2" "$good" >x.jsonl
    inspect 1 --data x.jsonl
    complains "x.jsonl: $1"
    inspect 0 --data x.jsonl --skip-bad-rows
    warns "skipped: x.jsonl: $1"
    warns "1 bad row skipped"
    grep -q '^2 rows, ' out || { cat out; fail "$2: not two rows"; }
}
bad "row 2, line 2: 'messages' is missing" '{}'
bad "line 2 is not a JSON object" '["text"]'
bad "line 2 is not a JSON object" '"text"'
bad "row 2, line 2: 'messages' is empty" '{"messages": []}'
bad "row 2, line 2: 'messages' is missing" '{"messages": null}'
bad "row 2, line 2: 'messages' is a number; it must be a list" '{"messages": 1}'
bad "row 2, line 2: 'messages' is a string that does not hold a list" '{"messages": "oops"}'
bad "row 2, line 2: 'messages[0]' is a number" '{"messages": [1]}'
bad "row 2, line 2: 'messages[0]' has the role \"wizard\"" '{"messages": [{"role": "wizard", "content": "x"}]}'
bad "row 2, line 2: 'messages[0]' has no role: 'role' is missing" '{"messages": [{"content": "x"}]}'
bad "row 2, line 2: 'messages[0]' has no content: 'content' is missing" '{"messages": [{"role": "user"}]}'
bad "row 2, line 2: 'messages[0]' has no content: 'content' is an object" \
    '{"messages": [{"role": "user", "content": {"a": 1}}]}'
bad "row 2, line 2: 'messages[0]' has a part of type \"image\"; only text is learned here" \
    '{"messages": [{"role": "user", "content": [{"type": "image", "image": "a.png"}]}]}'
bad "row 2, line 2: 'images' holds something to see or hear, and only text is learned here" \
    '{"messages": [{"role": "user", "content": "x"}], "images": ["a.png"]}'
bad "row 2, line 2: 'messages[0]' has a weight that is neither 0, not learned, nor 1, learned" \
    '{"messages": [{"role": "assistant", "content": "x", "weight": 0.5}]}'
bad "not valid JSON at line 2, column" '{"messages": [{"role": "user", "content": "x"}'
bad "line 2 is not valid UTF-8; convert the file" '{"messages": [{"role": "user", "content": "caf\xe9"}]}'
bad "row 2, line 2: 'messages' holds half of a surrogate pair" '{"messages": [{"role": "user", "content": "\\ud800"}]}'
bad "line 2: JSON nested deeper than 64 levels" "{\"messages\": $(head -c 20000 /dev/zero | tr '\0' '[')"

# --- elements of an array that are no objects ---
printf '[%s, 3, "a, ]", [1, {"x": [2]}],\n%s]' "$good" "$good" >list.json
inspect 1 --data list.json
complains "list.json: row 2, at line 1, is not an object"
inspect 0 --data list.json --skip-bad-rows
warns "3 bad rows skipped"
grep -q '^2 rows, ' out || { cat out; fail "an array: not two rows"; }

printf '[%s, {"text": "caf\303\251", x}]' '{"text": "bcde"}' >place.json
inspect 1 --data place.json
complains 'place.json: not valid JSON at line 1, column 37: '
inspect 0 --data place.json list.json --skip-bad-rows --samples 3
[ "$(grep -e '^--- ' out | cut -d : -f 1 | tr '\n' ,)" = \
    '--- row 1 of place.json,--- row 1 of list.json,--- row 5 of list.json,' ] ||
    { cat out; fail "rows are not numbered as in their files"; }

# --- files ---
refused() { # MESSAGE FILE
    inspect 1 --data "$2"
    complains "$2: $1"
    inspect 1 --data "$2" --skip-bad-rows
    complains "$2: $1"
}
: >empty.jsonl
refused "no text to read: files found: 1, all of them empty" empty.jsonl
printf '\n\n' >blank.jsonl
refused "no rows" blank.jsonl
{ printf '\xff\xfe'; printf '%s\n' "$good" | sed 's/./&\x00/g'; } >wide.jsonl
refused "is UTF-16, not UTF-8; save it as UTF-8" wide.jsonl
{ printf '\xef\xbb\xbf%s\r\n' "$good"; printf '%s' "$good"; } >mark.jsonl
inspect 0 --data mark.jsonl
grep -q '^2 rows, ' out || { cat out; fail "a mark of UTF-8 and CRLF"; }
printf '%s\n' "$good" | gzip >whole.gz
head -c 30 whole.gz >short.jsonl.gz
refused "damaged gzip data at byte 30: the file is cut short" short.jsonl.gz
printf '%s\n' "$good" >plain.jsonl.zst
refused "damaged zstd data at byte 0" plain.jsonl.zst
printf '\050\265\057\375\044\010' >short.jsonl.zst # a frame's head alone
refused "damaged zstd data at byte 6: the file is cut short" short.jsonl.zst
if "$SIFR" doctor --json | grep -q '"carquet"'; then
    whole="$SOURCE/tests/golden/parquet/chats.parquet"
    size=$(wc -c <"$whole")
    for bytes in 4 100 $((size / 2)) $((size - 9)) $((size - 1)); do
        head -c $bytes "$whole" >short.parquet
        inspect 1 --data short.parquet
        complains "short.parquet: "
        inspect 1 --data short.parquet --skip-bad-rows
    done
fi

# --- a line of 1 GiB: its row alone is refused, in little memory ---
{
    printf '%s\n{"messages": "' "$good"
    head -c 1G /dev/zero | tr '\0' a
    printf '"}\n%s\n' "$good"
} | gzip -1 >long.jsonl.gz
(
    ulimit -d 400000 # KiB
    inspect 1 --data long.jsonl.gz --seq-length 64
    complains "long.jsonl.gz: the row at line 2 has more than 67108864 bytes"
    inspect 0 --data long.jsonl.gz --skip-bad-rows
    warns "1 bad row skipped"
    grep -q '^2 rows, ' out || { cat out; fail "a long line: not two rows"; }
)

# --- templates that raise, loop or grow: the first row says so, and no row behind it is tried ---
for i in 1 2 3 4 5 6 7 8; do printf '%s\n%s\n%s\n%s\n' "$good" "$good" "$good" "$good"; done >many.jsonl
cp -r model other
template() { # MESSAGE TEMPLATE
    printf '%s' "$2" >other/chat_template.jinja
    model=other inspect 1 --data many.jsonl
    complains "many.jsonl: row 1, line 1: other/chat_template.jinja, line 1: $1"
}
template 'the template refuses these messages: never' '{{ raise_exception("never") }}'
template 'range: 1000000000 items, at most 100000 are allowed' '{% for i in range(1000000000) %}x{% endfor %}'
template 'nested deeper than 500 levels' '{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}'
template 'a text of more than 64 MiB' '{{ "a" * 10000000000 }}'
template 'division by zero' '{{ 1 // 0 }}'
template 'nothing is undefined' '{{ nothing.here }}'
began=$(date +%s)
template 'the template takes more than 20000000 steps' \
    '{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}'
[ $(($(date +%s) - began)) -lt 60 ] || fail "32 rows that loop take $(($(date +%s) - began)) s"
printf '%s' '{% for %}' >other/chat_template.jinja
model=other inspect 2 --data many.jsonl
complains 'other/chat_template.jinja, line 1: expected a name'
