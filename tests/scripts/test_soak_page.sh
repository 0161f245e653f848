# The page of `make soak`, from results as ctest writes them.
fail() { echo "$1" >&2; cat page >&2; exit 1; }
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
printf 'before\n<!-- soak: begin (x) -->\nold\n<!-- soak: end -->\nafter\n' >page
for again in 1 2; do "$SOURCE/scripts/soak-page.sh" results.xml "$BUILD" 1234abc page; done

grep -q '^20..-..-.., commit 1234abc, [0-9]* cores, ' page || fail "date, commit and machine"
sed '1,/^20/d' page >rest
cat >expected <<'END'

    one: passed, 12:34 min
        skipped: inner: no <MPI>
        1 skipped
        34 passed, 0 failed
    two: failed, 0:03 min
        failed: inner
        3 passed, 1 failed
    1 passed, 1 failed

<!-- soak: end -->
after
END
diff expected rest || fail "the output"
[ "$(head -n 2 page | tr '\n' ' ')" = "before <!-- soak: begin (x) --> " ] || fail "what stands before"
if grep -q '^old' page; then fail "the old output is still there"; fi

# A page stays as it was where there are no results, or no markers.
cp page before
if "$SOURCE/scripts/soak-page.sh" absent.xml "$BUILD" 1234abc page 2>err; then fail "no results"; fi
cmp before page || fail "the page changed without results"
echo mine >page
if "$SOURCE/scripts/soak-page.sh" results.xml "$BUILD" 1234abc page 2>err; then fail "no markers"; fi
[ "$(cat page)" = mine ] || fail "the page without markers changed"
