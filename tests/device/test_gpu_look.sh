# label: full
# gpu_look on the driver that tests play: each row is there with a result, a single trial, and a
# context that is held.
# not under sanitizers
. "$SOURCE/tests/support/expect.sh"
look=$BUILD/tests/gpu_look
rows=(driver GPU 'first context' memory 'second context' kernels IPC 'waits for words'
    'pinned memory' 'copy to the GPU' 'copy from the GPU' 'copies both ways' 'copy in the GPU'
    'copy to the GPU, not pinned' 'copy from the GPU, not pinned' 'product by cuBLASLt'
    'own product' nvidia-smi nvcc compute-sanitizer ncu PyTorch)
tools=' nvidia-smi nvcc compute-sanitizer ncu PyTorch '
cell() { awk -F ' *[|] *' -v row="$1" -v n="$2" '$2 == row { print $n; exit }' out; }

# all_there PASSED-BUT…: each row has a result and words beside it; all pass but those named
all_there() {
    local row result
    for row in "${rows[@]}"; do
        result=$(cell "$row" 3)
        [ "$(cell "$row" 4)" ] || { cat out; fail "$row: no figure"; }
        if [[ $tools = *" $row "* ]]; then
            [[ $result =~ ^(there|not there)$ ]] || { cat out; fail "$row: '$result'"; }
        elif [[ " $* " != *" <$row> "* ]]; then
            [ "$result" = passed ] || { cat out; fail "$row: '$result', not passed"; }
        fi
    done
}

expect 0 "$look"
[ "$(head -n 1 out)" = '| trial | result | figure |' ] || fail "head: $(head -n 1 out)"
[ "$(wc -l <out)" = $((2 + ${#rows[@]})) ] || { cat out; fail "other rows than ${rows[*]}"; }
! grep -vE '^\|[^|]+\|[^|]+\|[^|]+\|$' out || fail "a row has not three cells"
all_there
[[ $(cell 'product by cuBLASLt' 4) = *TFLOP/s*cuBLASLt*algorithm* ]] || { cat out; fail "no product"; }
[[ $(cell memory 4) = *'GB in all'*'GB free'* ]] || { cat out; fail "no free memory"; }

expect 0 "$look" --trial copies
[ "$(grep -c 'GB/s' out)" = 6 ] || { cat out; fail "not six rates"; }
expect 2 "$look" --trial none
expect 2 "$look" --wrong
# Without time each row says so.
expect 1 "$look" --seconds 0
[ "$(grep -c '| not run: no time was left |' out)" = 22 ] || { cat out; fail "--seconds 0"; }

# A context is held until SIGTERM, or the time is over, or the parent ends.
held() { until [ -s process ]; do sleep 0.02; done; cat process; }
"$look" --hold 600 process &
[ "$(held)" = $! ] || fail "another process than $!: $(cat process)"
kill $!
wait $! || fail "ended by SIGTERM with $?"
rm process
expect 0 "$look" --hold 0.1 process
rm process
bash -c '"$1" --hold 600 process & wait' parent "$look" &
parent=$! process=$(held)
kill -9 $parent
while kill -0 "$process" 2>/dev/null && [ "$(ps -o stat= -p "$process")" != Z ]; do sleep 0.02; done
expect 1 "$look" --hold 1 no/such/folder
grep -q 'no/such/folder cannot be written' err || fail "$(cat err)"
