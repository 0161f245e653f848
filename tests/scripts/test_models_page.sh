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
    [ "$(echo "$row" | awk -F'|' '{ print NF }')" = 11 ] || fail "$page: $type: not 9 columns"
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

# What two tensor ranks divide: the rows of the test that trains them, by type. Several folders of a
# type may have more or fewer layers, or heads of their own.
names=tests/engine/test_tensor_families.c
sed -n '/cuts\[\] = {/,/};/s/^ *{"\(.*\)", \([0-9]*\), \([0-9]*\)},.*/\1 \2 \3/p' $names >"$OLDPWD/cuts"
while read -r name cut all; do
    config=$(find tests/golden -path "*/models/$name/config.json" | head -n 1)
    type=$(sed -n 's/^ \{1,2\}"model_type": "\(.*\)",*$/\1/p' "$config")
    [ "$type" ] || fail "$name: no folder of golden results"
    if [ "$cut" = 0 ]; then echo "$type refused"; else echo "$type $cut of $all"; fi
done <"$OLDPWD/cuts" | awk '!seen[$1]++' >"$OLDPWD/cells"
[ -s "$OLDPWD/cells" ] || fail "$names has no rows"
for type in $known; do
    want=$(sed -n "s/^$type //p" "$OLDPWD/cells")
    have=$(grep "^| \`$type\` |" $page | awk -F' *[|] *' '{ print $10 }')
    [ "$have" = "$want" ] || fail "$page: $type: tensor is '$have', the test has '$want'"
done
