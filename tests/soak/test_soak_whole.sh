# label: soak
# Tests of which `make test` runs a part, in full: every combination of what they turn.
# timeout: 2400, not under sanitizers (they take memory of their own)
export SIFR_TEST_WHOLE=yes
for test in test_memory test_zero_runs; do
    begun=$SECONDS code=0
    "$SOURCE/tests/support/run-script.sh" "$SOURCE/tests/cli/$test.sh" >out 2>&1 || code=$?
    case $code in
    0) echo "$test: $((SECONDS - begun)) s" ;;
    77) cat out ;;
    *) cat out && echo "$test: exit code $code" >&2 && exit 1 ;;
    esac
done
