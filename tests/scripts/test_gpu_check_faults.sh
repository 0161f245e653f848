# label: full
# What scripts/gpu-check.sh makes of a GPU with something wrong, planted in the driver that tests
# play: each fault shows in its part's row, with what answers it, and the other parts go on.
# timeout: 400, not under sanitizers
fail() { cat out 2>/dev/null; echo "$1" >&2; exit 1; }
check="$SOURCE/scripts/gpu-check.sh"
unset FAKE_GPU SIFR_TEST_NO_CUBLASLT
planted() { # FAULT PARTS
    FAKE_GPU=$1 "$check" --fake --parts "$2" "$BUILD" results >out 2>&1 || :
    grep -q '^| part | result |' out || fail "$1: no table"
}
row() { # PATTERN: of a row of the tables
    grep -qE "^\| $1" out || fail "no row '$1'"
}

# No IPC: bits as before, through host memory.
planted ipc=0 look,ranks
row 'look \| failed \| [0-9]+ \| .* \| IPC: failed: .*cuIpcOpenMemHandle.*ranks exchange through host memory'
row 'IPC \| failed: '
row 'waits for words \| passed \|'
row 'ranks \| passed \| [0-9]+ \| .*exchange host memory \(.*cuIpcOpenMemHandle'
[ "$(grep -cE '^\| stage [13].* \| 2 \| [0-9a-f]{16} \| host memory, ' out)" = 3 ] || fail "not through host memory"

# No waits for words: the host waits.
planted memops=0 look,ranks
row 'look \| failed \| .*waits for words: failed: cuStreamWaitValue32'
row 'ranks \| passed \| [0-9]+ \| .*waits host \([^)]*cuStreamWaitValue32'
grep -qE '^\| ranks .*waits words' out && fail "waits for words, which were refused"

# Waits that never end: said, and the ranks go on with the host's.
planted memops=2 look,ranks
row 'waits for words \| no end within '
row 'stage 3, the host waits \| 2 \| [0-9a-f]{16} \|'
row 'stage 3 \| 2 \| no end \|'
row 'stage 1, the host waits \| 2 \| [0-9a-f]{16} \|'
row 'ranks \| failed \| .*no end within .*all ranks end with SIFR_DEVICE_WAITS=host'

# No cuBLASLt, one that fails, one that computes something else.
planted cublaslt=0 look,train
row 'product by cuBLASLt \| failed: .*not found \| products run with sifr.s own kernels \|'
row 'train \| passed \| [0-9]+ \| .*products own'
planted cublaslt=2 train,again
row 'train \| failed \| .*cublasLtMatmul .*EXECUTION_FAILED.*passes with sifr.s own products'
planted cublaslt=3 train,again
row 'train \| failed \| .*the loss is .* on the GPU, and .* on the CPU; passes with sifr.s own products'

# A wrong kernel, and one that never ends.
planted wrong=gemm_nt_bf16_small ops,again
row 'ops \| failed \| .*test_cuda_gemm .*gemm_is_right.*a kernel.s result is wrong'
planted hang=gemm_nt_bf16_small ops,again
row 'ops \| failed \| .*no end within 20 s; .*kernel gemm_nt_bf16_small, .*no end within 10 s'

# A wrong kernel that only models run: not cuBLASLt's fault, and it is told to. One whose access fails
# is no wrong result.
planted wrong=attention_forward_bf16_64 golden,again
row 'golden \| failed \| .*test_cuda_golden fails in the same way .*a kernel.s result is wrong'
grep -q "^| golden .*cuBLASLt's products" out && fail "cuBLASLt is blamed"
planted launches=30,error=700 bits,ops,again
row 'bits \| failed \| .*test_cuda_sums failed .*ILLEGAL_ADDRESS 700.*each kernel finished .*ILLEGAL_ADDRESS 700'
row 'ops \| failed \| .*kernel gemm_nt_bf16_small, finished at once .*ILLEGAL_ADDRESS 700'
grep -qE "^\| (bits|ops) .*result is wrong" out && fail "an access that fails is called a wrong result"

# A full card: nothing runs, and one line says why; or there is too little room for a step.
planted context=2 look,bits,ranks,peer
row 'look \| failed \| .*first context: failed: .*OUT_OF_MEMORY'
row 'bits \| not run \| 0 \| nothing \| see look \|'
row 'ranks \| not run \|'
planted memory=3000000 train
row 'train \| failed \| .*memory: a rank takes .* are free for it; nvidia-smi lists the processes'

# Kernels that the driver does not take: only what needs none goes on.
planted image=209 look,bits,peer
row 'kernels \| failed: .*the driver takes no kernels'
row 'bits \| not run \| 0 \| nothing \| the kernels do not load: .*the driver takes no kernels'
row 'peer \| (not run|passed|failed) \| [0-9]+ \|'
grep -qE '^\| peer .*do not load' out && fail "PyTorch needs no kernel of sifr's"
exit 0
