# The page and the output of `make soak`, from results as ctest writes them, and what may be among the
# long tests.
fail() { echo "$1" >&2; cat page output >&2; exit 1; }
results() { # NAME: another one
    echo '<testsuite name="x" tests="1">'
    echo "<testcase name=\"$1\" classname=\"$1\" time=\"60\" status=\"run\">"
    echo '<system-out>1 passed, 0 failed</system-out></testcase></testsuite>'
}
{
    echo '<testsuite name="x" tests="2" failures="1">'
    echo '<testcase name="one" classname="one" time="754.6" status="run">'
    echo '<system-out>skipped: inner: no &lt;MPI&gt;'
    echo '1 skipped'
    echo '34 passed, 0 failed'
    echo '</system-out>'
    echo '</testcase>'
    echo '<testcase name="two" classname="two" time="3" status="fail">'
    echo '<failure message=""/>'
    echo '<system-out>a long log'
    echo 'failed: inner'
    echo '3 passed, 1 failed</system-out>'
    echo '</testcase>'
    echo '</testsuite>'
} >results.xml
printf 'before\n<!-- soak: begin (x) -->\n| gone | passed | 1:00 |\n<!-- soak: end -->\nafter\n' >page
printf 'a head\n\ngone: passed, 1:00 min (x)\n    1 passed, 0 failed\n' >output
for again in 1 2; do "$SOURCE/scripts/soak-page.sh" results.xml "$BUILD" 1234abc page output zero one two; done

grep -qE '^one: passed, 12:34 min \(20..-..-.., commit 1234abc, [0-9]+ cores, .*\)$' output || fail "date, commit and machine"
sed '1,2d; s/ (20[^)]*)$/ (WHEN)/' output | diff - <(cat <<'END'
one: passed, 12:34 min (WHEN)
    skipped: inner: no <MPI>
    1 skipped
    34 passed, 0 failed
two: failed, 0:03 min (WHEN)
    failed: inner
    3 passed, 1 failed
END
) || fail "the output"
sed 's/20..-..-../DATE/; s/[0-9]* cores, [^|]* |/MACHINE |/' page | diff - <(cat <<'END'
before
<!-- soak: begin (x) -->

| test | result | min | date | commit | machine | last line |
|---|---|---|---|---|---|---|
| zero | has not run yet | | | | | |
| one | passed | 12:34 | DATE | 1234abc | MACHINE | 34 passed, 0 failed |
| two | failed | 0:03 | DATE | 1234abc | MACHINE | 3 passed, 1 failed |

1 passed, 1 failed, 1 not run; together 12:37 min

<!-- soak: end -->
after
END
) || fail "the page"

# One of them alone: the others keep their parts. A part may have no commit.
sed -i 's/^\(one: .*\)commit 1234abc, /\1/' output
results two >results.xml
"$SOURCE/scripts/soak-page.sh" results.xml "$BUILD" 5678def page output zero one two
grep -q '^| one | passed | 12:34 | 20..-..-.. |  | [0-9]* cores, [^|]* | 34 passed' page || fail "the row of another test"
grep -q '^    34 passed, 0 failed$' output || fail "the part of another test"
grep -q '^| two | passed | 1:00 | [^|]* | 5678def |' page || fail "its own row"
grep -q '^two: passed, 1:00 min (.*commit 5678def,' output || fail "its own part"
if grep -q 'failed: inner' output; then fail "its old output is still there"; fi
grep -q '^2 passed, 0 failed, 1 not run; together 13:34 min$' page || fail "the sum"

# Both stay as they were where there are no results, or no markers.
cp page before
cp output printed
if "$SOURCE/scripts/soak-page.sh" absent.xml "$BUILD" 1234abc page output one 2>err; then fail "no results"; fi
cmp before page && cmp printed output || fail "the page changed without results"
echo mine >page
if "$SOURCE/scripts/soak-page.sh" results.xml "$BUILD" 1234abc page output one 2>err; then fail "no markers"; fi
[ "$(cat page)" = mine ] && cmp printed output || fail "the page without markers changed"

# The whole of it: a ctest is played, which the second test ends as a key does.
mkdir bin
cat >bin/ctest <<'P'
#!/bin/sh
case " $* " in
*" -N "*) for name in one two three; do echo "  Test #1: $name"; done ;;
*) [ "$6" != '^two$' ] || exit 130
    name=${6#^}
    sed "s/NAME/${name%$}/g" pattern >"soak-results/${name%$}.xml"
    ;;
esac
P
sed -i 's/soak-results/$2\/soak-results/' bin/ctest
chmod +x bin/ctest
results NAME >pattern
mkdir build
ln -s "$SIFR" build/sifr
cp before page
code=0
PATH=$PWD/bin:$PATH "$SOURCE/scripts/soak.sh" build page first . >out 2>&1 || code=$?
[ $code = 130 ] && grep -qx 'soak.sh: two was interrupted' out || fail "interrupted: $code, $(cat out)"
grep -q '^| one | passed | 1:00 |' page && grep -q '^one: passed' first || fail "what had ended is not there"
grep -q '^| three | has not run yet' page || fail "what had not begun"

# The page of the tree is what its output says.
printf '<testsuite/>' >none.xml
cp "$SOURCE/docs/soak.md" page
cp "$SOURCE/docs/soak-output.txt" output
names=$(sed -n 's/^| \(test_[^ ]*\) |.*/\1/p' page)
# shellcheck disable=SC2086 # words
"$SOURCE/scripts/soak-page.sh" none.xml "$BUILD" none page output $names
diff "$SOURCE/docs/soak-output.txt" output || fail "docs/soak-output.txt"
diff "$SOURCE/docs/soak.md" page || fail "docs/soak.md is not what docs/soak-output.txt says"

# No test takes more than 40 minutes.
for test in $(grep -rlE '^(#|/\*) *label: soak' "$SOURCE/tests" --include='test_*'); do
    seconds=$(head -n 10 "$test" | sed -n 's/.*timeout: \([0-9]*\).*/\1/p')
    [ "${seconds:-9999}" -le 2400 ] || fail "$test: its limit is ${seconds:-not given}, and 2400 s the most"
done

# Tests that build into one folder give it the same target and options: else each builds it anew.
sed -n 's/^inner_build //p' "$SOURCE"/tests/*/*.sh | sort -u >builds
[ "$(wc -l <builds)" -ge 5 ] || fail "too few builds: $(cat builds)"
cut -d' ' -f1 builds | uniq -d | { ! grep .; } || fail "built two ways: $(cat builds)"
