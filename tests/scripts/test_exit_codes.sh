# in check
# No script says another command's exit code: in `… || { cat out; echo "exit code $?"; }` it is cat's.
late() { # FILE…: lines that read $? where another command has run since
    grep -nE '(\|\||&&|then|;|^) *\{? *(cat|echo|fail|grep|head|printf|rm|sed|tail) [^}|&]*; *[^}]*\$\?' "$@"
}
cat >late.sh <<'END'
run || { cat out; echo "exit code $?"; exit 1; }
    run >out 2>&1 || { cat out err; fail "$case: exit code $?"; }
    { cat out; fail "stages: exit code $?"; }
if ! run; then cat out; fail "exit code $?"; fi
END
cat >right.sh <<'END'
run || { code=$?; cat out; echo "exit code $code"; exit 1; }
run || fail "exit code $?"
run; echo "exit code $?"
run() { : >calls; code=0; "$1" >out 2>&1 || code=$?; }
END
[ "$(late late.sh | wc -l)" = 4 ] || { echo "not found: $(late late.sh)" && exit 1; }
if late right.sh; then exit 1; fi
if late $(find "$SOURCE"/{tests,scripts,bench,examples} -name '*.sh' ! -name test_exit_codes.sh) \
    "$SOURCE"/{.ci,bench}/run; then
    echo 'these read $? where another command has run since: code=$? first'
    exit 1
fi
