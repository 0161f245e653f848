# README: its table has the program's commands, its links lead somewhere, its example is understood.
fail() { echo "$1" >&2; exit 1; }
readme=$SOURCE/README.md

sed -n 's/^| `sifr \([a-z]*\)` .*/\1/p' "$readme" | sort >table
"$SIFR" --help | sed -n 's/^  \([a-z]\+\) .*/\1/p' | sort >help
cmp table help || fail "README and --help differ: $(comm -3 table help | tr -s '\t\n' '  ')"

grep -o '](\([^)]*\))' "$readme" | sed 's/](\(.*\))/\1/' | while read -r link; do
    [ -e "$SOURCE/$link" ] || fail "no such page: $link"
done
for target in demo test install; do
    grep -q "make $target" "$readme" || fail "README does not name make $target"
    grep -qE "^([a-z ]+ )?$target( [a-z ]+)?:" "$SOURCE/Makefile" || fail "no target $target"
done

# The example, on a model of its own; --dry-run says what each key does, and stops.
mkdir texts
cp "$SOURCE"/docs/*.md texts
cp "$SOURCE/README.md" held-out.txt
"$SIFR" tokenizer train --vocab-size 512 --data texts --output tokenizer >out 2>&1 || fail "$(cat out)"
sed 's/"vocab_size": *[0-9]*/"vocab_size": 512/; s/"max_position_embeddings": *[0-9]*/"max_position_embeddings": 1024/' \
    "$SOURCE/examples/model_demo.json" >config.json
"$SIFR" init --config config.json --tokenizer tokenizer --output MODEL_DIR >out 2>&1 || fail "$(cat out)"
ln -s "$SOURCE/examples" examples
command=$(sed -n '/build\/sifr train/,/save-steps/p' "$readme" | tr -d '\\\n')
[ -n "$command" ] || fail "no example of train"
eval "${command/build\/sifr/\"$SIFR\"} --dry-run" >out 2>&1 || fail "the example: $(cat out)"
grep -q 'optimizer.params.lr' out || fail "no word on the keys: $(cat out)"
