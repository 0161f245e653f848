# The frame of the program: help, version, unknown names, exit codes.
fail() { echo "$1" >&2; exit 1; }
# expect CODE COMMAND…: runs it, with its output in `out` and its errors in `err`
expect() {
    local want=$1 code=0
    shift
    "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] || { cat out err; fail "$*: exit code $code, not $want"; }
}

expect 0 "$SIFR" --version
grep -qxE 'sifr [0-9]+\.[0-9]+\.[0-9]+' out && [ "$(wc -l <out)" = 1 ] || fail "--version: $(cat out)"

# For a report of a fault: what it was built of, and where it runs, as others say it.
cp out version
expect 0 "$SIFR" --version --verbose
[ ! -s err ] && [ "$(head -n 1 out)" = "$(cat version)" ] || fail "--version --verbose: $(cat out err)"
cp out verbose
said() { sed -n "s/^$1  *//p" verbose; }
commit=$(said commit)
if [ -e "$SOURCE/.git" ]; then
    git -C "$SOURCE" cat-file -e "${commit%, with changes}^{commit}" || fail "no commit: $commit"
fi
[ "$commit" ] || fail "nothing of a commit"
cache() { sed -n "s/^$1:[A-Z]*=//p" "$BUILD/CMakeCache.txt"; }
[ "$(said kernels)" = "$(cache SIFR_KERNEL_SETS | tr ';' ' ')" ] || fail "kernels: $(said kernels)"
said built | grep -q "^$(cache CMAKE_BUILD_TYPE), [A-Za-z]* [0-9]" || fail "built: $(said built)"
[ "$(said libraries | sed 's/^liburing [0-9.]* //')" = "$("$SIFR" doctor | sed -n 's/^libraries *//p')" ] ||
    fail "doctor has other libraries: $(said libraries)"
said 'runs on' | grep -q "$(uname -r)" || fail "runs on: $(said 'runs on')"
for part in MPI 'GPU kernels' Parquet processor memory; do
    [ "$(said "$part")" ] || fail "nothing of $part: $(cat verbose)"
done
expect 0 "$SIFR" --verbose --version
cmp out verbose || fail "the order of both options matters"
expect 2 "$SIFR" --version train
[ "$(cat err)" = 'sifr: --version takes --verbose alone, not `train`' ] || fail "$(cat err)"
expect 2 "$SIFR" --verbose

expect 0 "$SIFR" --help
[ ! -s err ] || fail "--help writes to standard error"
commands=$(sed -n 's/^  \([a-z]\+\) .*/\1/p' out)
[ -n "$commands" ] || fail "--help lists no command"

# Each command has a help with an example; commands with subcommands list them.
for command in $commands; do
    expect 0 "$SIFR" "$command" --help
    [ ! -s err ] || fail "$command --help writes to standard error"
    if grep -q '^Usage: sifr [a-z]* COMMAND' out; then
        for inner in $(sed -n 's/^  \([a-z]\+\) .*/\1/p' out); do
            expect 0 "$SIFR" "$command" "$inner" --help
            grep -A1 '^Example' out | grep -q "sifr $command $inner" ||
                fail "$command $inner: no example"
        done
    else
        grep -A9 '^Example' out | grep -q "sifr $command" || fail "$command --help: no example"
    fi
    expect 2 "$SIFR" "$command" --no-such-option
    [ "$(wc -l <err)" = 1 ] || fail "$command: an error is one line, not: $(cat err)"
    grep -q "^sifr $command" err || fail "$command: the error does not begin with the name"
done

# Wrapped at 80 columns, or at the terminal's; options in groups, and sentences; exit codes last.
export LC_ALL=C.UTF-8
too_wide() { awk -v limit="$1" '{ gsub(/\r/, "") } length($0) >= limit' "$2"; }
for command in $commands "tokenizer train" "bench comm"; do
    expect 0 "$SIFR" $command --help
    [ -z "$(too_wide 80 out)" ] || fail "$command --help is too wide: $(too_wide 80 out)"
    tail -n 2 out | head -n 1 | grep -q '^  129, 130, 143  stopped by SIGHUP, SIGINT or SIGTERM' ||
        [ "$command" = tokenizer ] || [ "$command" = bench ] || fail "$command: no exit codes"
done
expect 0 "$SIFR" train --help
for group in 'Options' 'What to train' 'Precision, memory and speed' 'Ranks'; do
    grep -q "^$group:$" out || fail "train --help has no group '$group'"
done
sed -n '/^Options:/,/^Example:/p' out | grep -A1 -E '^  --[a-z0-9-]+( [^ ]+|\[[^ ]*\])?$' | grep -vE '^( *--|--$)' >below
sed -n '/^Options:/,/^Example:/p' out | sed -n 's/^  --[^ ]*\( [A-Z.]*\)\{0,1\}   *\([^ ].*\)/\2/p' >beside
if grep -hE '^ *[a-z]+ ' below beside; then fail "an option's text does not begin with a capital"; fi
if command -v script >/dev/null; then
    script -qec "stty cols 64; '$SIFR' train --help" /dev/null </dev/null >out 2>err || fail "script: $(cat err)"
    [ -z "$(too_wide 65 out)" ] || fail "in 64 columns: $(too_wide 65 out)"
    too_wide 58 out | grep -q . || fail "in 64 columns: narrower than the terminal"
fi

expect 2 "$SIFR"
expect 2 "$SIFR" doctr
[ "$(cat err)" = 'sifr: unknown command `doctr`: did you mean `sifr doctor`?' ] || fail "$(cat err)"
expect 2 "$SIFR" qqqqqqqqqqqq
expect 2 "$SIFR" --helpp
expect 2 "$SIFR" doctor --jsn
grep -q 'did you mean --json' err || fail "$(cat err)"
expect 2 "$SIFR" doctor word
expect 2 "$SIFR" doctor --json=3

# What is missing is said in one line, and is no wrong usage.
tokenizer=$SOURCE/tests/golden/models/gpt2
while read -r line; do
    expect 1 "$SIFR" $line </dev/null
    [ "$(wc -l <err)" = 1 ] || fail "$line: an error is one line, not: $(cat err)"
    grep -q "^sifr ${line%% *}.*absent" err || fail "$line: does not name it: $(cat err)"
    [ ! -e made ] || fail "$line: left its output"
done <<COMMANDS
train --config absent --model $tokenizer --data absent --output made
train --model absent --data $SOURCE/README.md --output made
train --model $tokenizer --data absent --output made
train --hostfile absent --model $tokenizer --data $SOURCE/README.md --output made
init --config absent --output made
tokenizer train --vocab-size 300 --data absent --output made
tokenizer train --vocab-size 300 --data absent*.txt --output made
tokenizer encode --tokenizer absent
tokenizer decode --tokenizer absent
tokenize --tokenizer absent --data $SOURCE/README.md --output made
eval --model absent --data $SOURCE/README.md --seq-length 8
eval --model $tokenizer --data absent --seq-length 8
generate --model absent --prompt x
plan --config absent --model $tokenizer
plan --model absent
inspect absent
COMMANDS

# Results that cannot be written are an error.
expect 1 sh -c "'$SIFR' --help >/dev/full"

# A launcher that is not MPI's: each of its ranks would train by itself.
expect 2 env TORCHELASTIC_RUN_ID=none WORLD_SIZE=2 RANK=0 LOCAL_RANK=0 "$SIFR" train \
    --model "$SOURCE/tests/golden/models/gpt2" --data "$SOURCE/README.md" --output ranks
grep -q 'torchrun.*one of 2 ranks.*mpirun' err || fail "$(cat err)"
[ ! -e ranks ] || fail "a refused run left its output"

# What was meant by a word that belongs to no option, and by --output where a path stands alone.
mkdir -p folder
echo '{}' >ds.json
expect 2 "$SIFR" generate folder
grep -q '`folder` belongs to no option: did you mean `--model folder`?$' err || fail "$(cat err)"
expect 2 "$SIFR" train ds.json
grep -q '`ds.json` belongs to no option: did you mean `--config ds.json`?$' err || fail "$(cat err)"
expect 2 "$SIFR" train --config ds.json ds.json
grep -q 'belongs to no option; see `sifr train --help`$' err || fail "$(cat err)"
expect 2 "$SIFR" import --config ds.json --output out.json
grep -q 'unknown option --output: give the path alone: sifr import .OPTION.… .OUT.$' err || fail "$(cat err)"
