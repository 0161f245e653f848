# in check
# docs/models.md has a row for each model_type of the registry and no other, and what a row says is
# tested: a folder of that type is among those that the tests of families and of golden models run.
fail() { echo "$1" >&2; exit 1; }
mkdir -p model && echo '{"model_type": "none"}' >model/config.json
known=$("$SIFR" plan --model model 2>&1 | sed -n 's/.*; supported are //p' |
    tr -d ' ' | tr ',' '\n' | sort)
[ "$known" ] || fail "the program does not say which model types it has"
cd "$SOURCE" || exit 1
page=docs/models.md
rows=$(sed -n 's/^| `\([a-z0-9_-]*\)` |.*/\1/p' $page | grep -vx model_type | sort)
[ "$known" = "$rows" ] || fail "$page and the registry differ: $(
    { echo "$known"; echo "$rows"; } | sort | uniq -u | tr '\n' ' ')"

# Types of the folders that are run. The tests in C name the folders that must open.
folders="tests/golden/models/gpt2"
for place in families dense encoders multimodal gemma4; do
    test=tests/model/test_golden_$place.c
    expected=$(sed -n '/expected\[\] = {/,/};/p' $test | grep -oE '"[^"]+"' | tr -d '"')
    [ "$expected" ] || fail "$test expects no folder"
    for name in $expected; do folders="$folders tests/golden/$place/models/$name"; done
done
tested=$(for folder in $folders; do
    sed -n 's/^  "model_type": "\(.*\)",*$/\1/p' "$folder/config.json"
done | sort -u)
for type in $known; do
    row=$(grep "^| \`$type\` |" $page)
    [ "$(echo "$row" | awk -F'|' '{ print NF }')" = 10 ] || fail "$page: $type: not 8 columns"
    case $row in
    *"| yes |"*) echo "$tested" | grep -qx "$type" || fail "$page: $type: no test runs such a folder" ;;
    esac
done

# All folders of families are expected to open: the program's test runs all that are there.
for folder in tests/golden/families/models/* tests/golden/encoders/models/* \
    tests/golden/dense/models/* tests/golden/multimodal/models/* tests/golden/gemma4/models/*; do
    case " $folders " in
    *" $folder "*) ;;
    *) fail "$folder is not expected to open" ;;
    esac
done
