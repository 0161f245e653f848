# The last lines of `make test`, from results as ctest writes them.
fail() { echo "$1" >&2; cat out >&2; exit 1; }
run() { code=0; "$SOURCE/scripts/test-summary.sh" "$@" >out 2>&1 || code=$?; }
{
    echo '<testsuite name="x" tests="4" failures="1" disabled="0" skipped="1">'
    echo '<testcase name="one" classname="one" time="0" status="run">'
    echo '<system-out>[  SKIPPED ] inner_case'
    echo '</system-out>'
    echo '</testcase>'
    echo '<testcase name="two" classname="two" time="0" status="notrun">'
    echo '<skipped message="SKIP_RETURN_CODE=77"/>'
    echo '<system-out>no data &lt;here&gt;'
    echo '</system-out>'
    echo '</testcase>'
} >begin
printf '</testsuite>\n' >end

cat begin end >good
run good
[ "$code" = 0 ] || fail "exit code $code"
[ "$(tail -n 1 out)" = "1 passed, 0 failed" ] || fail "the last line"
[ "$(tail -n 2 out | head -n 1)" = "1 skipped, and 1 single cases of tests that ran" ] || fail "skips"
grep -qx 'skipped: two: no data <here>' out || fail "the reason for a skip"
grep -qx 'skipped: one.inner_case' out || fail "a skipped case"

# A failure, and a test whose program is not there: both failed.
{
    cat begin
    echo '<testcase name="three" classname="three" time="0" status="fail">'
    echo '<failure message=""/>'
    echo '</testcase>'
    echo '<testcase name="four" classname="four" time="0" status="notrun">'
    echo '<skipped message="Unable to find executable"/>'
    echo '</testcase>'
    cat end
} >bad
run bad
[ "$code" != 0 ] && [ "$(tail -n 1 out)" = "1 passed, 2 failed" ] || fail "failures: exit code $code"

# Two runs are added up; one without results is no success.
run good good
[ "$code" = 0 ] && [ "$(tail -n 1 out)" = "2 passed, 0 failed" ] || fail "two good ones"
run good bad
[ "$code" != 0 ] && [ "$(tail -n 1 out)" = "2 passed, 2 failed" ] || fail "a good and a bad one"
run good /dev/null
[ "$code" != 0 ] && [ "$(tail -n 1 out)" = "0 passed, 1 failed" ] || fail "one of two did not run"

# Nothing ran: no success.
run /dev/null
[ "$code" != 0 ] && [ "$(tail -n 1 out)" = "0 passed, 1 failed" ] || fail "no results"
cat <<END >none
<testsuite name="x" tests="0">
</testsuite>
END
run none
[ "$code" != 0 ] || fail "no tests at all count as success"
