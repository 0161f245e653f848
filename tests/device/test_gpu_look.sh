# label: full
# gpu_look on the driver that tests play: each row is there with a result, what is wrong with a GPU
# shows in its row while the others pass, a single trial, and a context that is held.
# timeout: 300, not under sanitizers
. "$SOURCE/tests/support/expect.sh"
look=$BUILD/tests/gpu_look
rows=(driver GPU 'first context' memory 'second context' kernels IPC 'waits for words'
    'pinned memory' 'copy to the GPU' 'copy from the GPU' 'copies both ways' 'copy in the GPU'
    'copy to the GPU, not pinned' 'copy from the GPU, not pinned' 'product by cuBLASLt'
    'own product' nvidia-smi nvcc compute-sanitizer ncu PyTorch)
tools=("${rows[@]: -5}")
cell() { awk -F ' *[|] *' -v row="$1" -v n="$2" '$2 == row { print $n; exit }' out; }

among() { # NAME NAME…
    local name=$1 one
    shift
    for one; do [ "$one" != "$name" ] || return 0; done
    return 1
}

# Each row has a result and words beside it; all pass but those named.
all_there() { # ROW…
    local row result
    for row in "${rows[@]}"; do
        result=$(cell "$row" 3)
        [ "$(cell "$row" 4)" ] || { cat out; fail "$row: no figure"; }
        if among "$row" "${tools[@]}"; then
            [[ $result =~ ^(there|not there)$ ]] || { cat out; fail "$row: '$result'"; }
        elif ! among "$row" "$@"; then
            [ "$result" = passed ] || { cat out; fail "$row: '$result', not passed"; }
        fi
    done
}

expect 0 "$look"
[ "$(head -n 1 out)" = '| trial | result | figure |' ] || fail "head: $(head -n 1 out)"
[ "$(wc -l <out)" = $((2 + ${#rows[@]})) ] || { cat out; fail "other rows than ${rows[*]}"; }
! grep -vE '^\|[^|]+\|[^|]+\|[^|]+\|$' out || fail "a row has not three cells"
all_there
[[ $(cell 'product by cuBLASLt' 4) = *TFLOP/s*cuBLASLt*algorithm* ]] || fail "$(cat out)"
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

# What is wrong shows in its row, with what sifr does then; the other rows are as before.
wrong() { # WISH ROW WORDS OTHERWISE [ROW…]
    local wish=$1 row=$2 words=$3 otherwise=$4
    shift 4
    FAKE_GPU=$wish expect 1 "$look"
    all_there "$row" "$@"
    [[ $(cell "$row" 3) =~ $words ]] || { cat out; fail "$wish: $row without '$words'"; }
    [ "$(cell "$row" 4)" = "$otherwise" ] || { cat out; fail "$wish: $row: not '$otherwise'"; }
}
# These fail, and say why in the driver's words; the others pass.
all_fail() { # WISH WORDS ROW…
    local wish=$1 words=$2 row
    shift 2
    FAKE_GPU=$wish expect 1 "$look"
    all_there "$@"
    for row; do
        [[ $(cell "$row" 3) =~ ^failed:.*$words ]] || { cat out; fail "$wish: $row passed"; }
    done
}
wrong ipc=0 IPC '^failed: in the other process: cuIpcOpenMemHandle: .* 801 ' \
    'ranks exchange through host memory'
wrong memops=0 'waits for words' '^failed: cuStreamWaitValue32: .* 801 ' \
    'the host waits for transfers'
wrong memops=2 'waits for words' '^no end within 16 s$' 'the host waits for transfers'
wrong cublaslt=0 'product by cuBLASLt' '^failed: cuBLASLt .* was not found$' \
    "products run with sifr's own kernels"
wrong cublaslt=2 'product by cuBLASLt' '^failed: cublasLtMatmul .*EXECUTION_FAILED' \
    "products run with sifr's own kernels"
none='CUDA_ERROR_OUT_OF_MEMORY 2'
pinned=('copy to the GPU' 'copy from the GPU' 'copies both ways')
plain=('copy to the GPU, not pinned' 'copy from the GPU, not pinned' 'copy in the GPU')
wrong pinned=0 'pinned memory' "^failed: cuMemHostAlloc: $none " \
    'copies go through ordinary memory, and the host waits for transfers' \
    'waits for words' "${pinned[@]}"
all_fail pinned=0 "$none" 'waits for words' 'pinned memory' "${pinned[@]}"
all_fail memory=1000000 '(OUT_OF_MEMORY|of its 977 KiB are free)' IPC "${pinned[@]}" "${plain[@]}" \
    'product by cuBLASLt' 'own product'
[[ $(cell memory 4) = '0.00 GB in all'* ]] || { cat out; fail "a full card's memory"; }
all_fail context=2 "cuDevicePrimaryCtxRetain: $none" "${rows[@]:2:15}"
all_fail devices=0 'sees no GPU' "${rows[@]:0:17}"
