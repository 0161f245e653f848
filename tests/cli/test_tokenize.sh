# `sifr tokenize`: a store that holds the ids of each file, whatever the number of threads; odd text
# is counted and said; what cannot be done leaves the output as it was.
fail() { echo "$1" >&2; cat out err >&2; exit 1; }
# expect CODE ARGUMENT…: runs sifr, with its output in `out` and its errors in `err`
expect() {
    local want=$1 code=0
    shift
    "$SIFR" "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] || fail "sifr $*: exit code $code, not $want"
    [ "$want" = 0 ] || [ "$(wc -l <err)" = 1 ] || fail "sifr $*: an error is one line"
}
complains() { grep -qE -- "$1" err || fail "no error like: $1"; }

# Some megabytes of text in several scripts, so that documents are cut for the threads.
mkdir -p text/deep
awk 'BEGIN { srand(7); split("the of größer naïve слово 日本語 words, 12345 \xF0\x9F\x98\x80 isn'"'"'t\t  end.", w, " ")
    for (i = 0; i < 400000; i++) printf "%s%s", w[1 + int(rand() * 13)], i % 17 ? " " : "\n" }' >text/large
printf 'A last line without an end' >text/deep/b.txt
printf 'bad \xff\xfe bytes, \xe2\x82\n' >text/deep/a.txt
: >text/empty
mkdir tokenizer
expect 0 tokenizer train --vocab-size 600 --data text --output tokenizer

for threads in 1 2 5; do
    expect 0 tokenize --tokenizer tokenizer --data text --output "stores/$threads" \
        --threads $threads --json
    [ $threads = 1 ] || cmp stores/1.bin stores/$threads.bin
    [ $threads = 1 ] || cmp stores/1.idx stores/$threads.idx
done
number() { sed -n "s/^ *\"$1\": \([0-9]*\),\{0,1\}$/\1/p" out; }
[ "$(number documents)" = 3 ] || fail "documents"
[ "$(number bytes)" = "$(cat text/large text/deep/* | wc -c)" ] || fail "bytes"
[ "$(number empty_files)" = 1 ] || fail "empty files"
[ "$(number invalid_sequences)" = 3 ] || fail "invalid sequences"
[ "$(number invalid_documents)" = 1 ] || fail "invalid documents"
[ "$(number documents_without_newline)" -ge 1 ] || fail "no newline at the end"
complains 'warning: 3 sequences in 1 document is no valid UTF-8'
complains '1 empty file left out'

# The documents are the files in their order, each with the end of text behind it.
for file in deep/a.txt deep/b.txt large; do
    expect 0 tokenizer encode --tokenizer tokenizer <"text/$file"
    tr -s ' ' '\n' <out | sed '/^$/d'
    echo end
done >wanted
od -An -v -t u2 -w2 stores/1.bin | tr -d ' ' >stored
eos=$(sed -n "$(($(grep -n -m 1 end wanted | cut -d: -f1)))p" stored)
sed "s/end/$eos/" wanted | cmp - stored || fail "the store holds other ids"
grep -q '"<|endoftext|>"' tokenizer/tokenizer.json || fail "no end of text in the tokenizer"

# A text that ends with that token itself gets no second one.
printf 'x<|endoftext|>' >ended
expect 0 tokenize --tokenizer tokenizer --data ended --output ended-store
expect 0 tokenizer encode --tokenizer tokenizer <ended
[ "$(od -An -t u2 ended-store.bin | wc -w)" = "$(wc -w <out)" ] || fail "two ends of text"
[ "$(od -An -t u2 ended-store.bin | awk '{ print $NF }')" = "$eos" ] || fail "no end of text"

# What the post-processor puts around a text, unless it is to be left out.
bos=$SOURCE/tests/golden/tokenizer/llama3.json
expect 0 tokenizer encode --tokenizer "$bos" --add-special-tokens <text/deep/b.txt
echo $(cat out) 0 >wanted
grep -q '^1803 ' wanted || fail "no BOS in the reference"
expect 0 tokenize --tokenizer "$bos" --data text/deep/b.txt --output bos
complains 'each document is <\|begin\|> … <\|endoftext\|>'
[ "$(echo $(od -An -v -t u2 bos.bin))" = "$(cat wanted)" ] || fail "not the ids of transformers"
expect 0 tokenize --tokenizer "$bos" --data text/deep/b.txt --output plain --no-special-tokens
[ "1803 $(echo $(od -An -v -t u2 plain.bin))" = "$(cat wanted)" ] || fail "--no-special-tokens"

# In plain words, over an old store, from patterns and single files.
expect 0 tokenize --tokenizer tokenizer --data 'text/deep/*.txt' text/large --output stores/2
grep -qE '^stores/2.bin, stores/2.idx: 3 documents, [0-9,]+ tokens, from ' out || fail "result"
cmp stores/1.bin stores/2.bin
expect 0 inspect stores/2
grep -qE '^  documents +3$' out || fail "inspect"

# Nothing but a store is replaced, the text least of all.
kept() { # PREFIX FILE DATA
    expect 2 tokenize --tokenizer tokenizer --data "$3" --output "$1"
    complains "^sifr tokenize: --output $1: $2 exists and is of no whole token store; name another\$"
}
mkdir foreign
for name in text.bin a.idx b.bin b.idx; do echo 'some text' >foreign/$name; done
cp stores/2.idx foreign/c.idx
cp text/deep/b.txt foreign/c.bin
cp -r foreign foreign-before
kept foreign/text foreign/text.bin foreign/text.bin
kept foreign/a foreign/a.idx text
kept foreign/b foreign/b.bin text
kept foreign/c foreign/c.bin foreign/c.bin
diff -r foreign-before foreign || fail "a file of another kind was replaced"

# What cannot be done says so and changes nothing.
cp -r stores before
printf 'x\0y' >text/binary
expect 1 tokenize --tokenizer tokenizer --data text --output stores/2
complains 'text/binary: not text: it has a NUL byte at 1'
rm text/binary
expect 1 tokenize --tokenizer tokenizer --data absent --output stores/2
complains 'absent: no such file'
expect 1 tokenize --tokenizer tokenizer --data text/empty --output stores/2
complains 'no text to read'
expect 1 tokenize --tokenizer absent --data text --output stores/2
expect 2 tokenize --tokenizer tokenizer --data text
expect 2 tokenize --tokenizer tokenizer --data text --output stores/2 --threads x
expect 1 tokenize --tokenizer tokenizer --data text --output text/large/x
(
    ulimit -f 100
    expect 1 tokenize --tokenizer tokenizer --data text --output stores/2
    complains 'cannot write: File too large'
)
diff -r before stores || fail "a failed run changed the output"
