# What a stage of ZeRO cuts is said in one place, plan_cuts (src/plan/queries.c): other files of the
# plan ask it, and compare no stage with a number. The search of --fit chooses stages, by number.
. "$SOURCE/tests/support/expect.sh"
compares='zero\.stage *([<>=!]=|[<>])'
found=$(cd "$SOURCE/src/plan" && grep -rnE "$compares" --include=*.[ch] . |
    grep -v -e '^./queries.c:' -e '^./search/' || :)
[ -z "$found" ] || fail "compared with a number, ask plan_cuts or plan_slices: $found"
grep -qE "$compares" "$SOURCE/src/plan/queries.c" || fail "plan_cuts compares nothing: mend this test"
