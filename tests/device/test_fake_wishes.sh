# label: full
# What FAKE_GPU plants in the played GPU (support/cuda/fake_wishes.h) shows in test programs on it,
# each in its own way; and what they are run again with names the kernel or goes around it.
# timeout: 300, not under sanitizers
. "$SOURCE/tests/support/expect.sh"
. "$SOURCE/tests/support/until_it.sh"
export CMOCKA_MESSAGE_OUTPUT=stdout
unset FAKE_GPU SIFR_TEST_NO_CUBLASLT SIFR_DEVICE_CHECK SIFR_CUDA_PRODUCTS
shows() { cat out err | grep -qE -- "$1"; }
says() { shows "$1" || { cat out err; fail "no '$1'"; }; }
quiet() { ! cat out err | grep -E -- "$1" || fail "said, where it must not be"; }
# golden CODE FAKE_GPU TEST: a golden model on the played driver, with one thing wrong
golden() { FAKE_GPU=$2 expect "$1" "$BUILD/tests/test_cuda_golden" "$3"; }
# op CODE FAKE_GPU TEST: an op test, likewise
op() { SIFR_TEST_GPU=fake FAKE_GPU=$2 expect "$1" "$BUILD/tests/test_cuda_gemm" "$3"; }

# A word that is none, and a kernel that is none: a line, and nothing runs.
for wish in cublasslt=0 memory wrong=gemm memory=1000000000,pined=0; do
    golden 2 $wish least
    says '^FAKE_GPU: .*: no such (wish|kernel)'
    quiet 'OK'
done
golden 0 memory=1000000000 least
says '^ran: products own [1-9][0-9]* \(cuBLASLt was not asked for\); waits none; memory pinned$'
golden 1 memory=200000 least
says 'memory: a rank takes .*GPU.* 195 KiB are free'

# The GPU is full, cannot be used, or does not pin: as in the program.
golden 1 context=2 least
says 'has no room for this process.s context'
golden 1 image=209 least
says 'the driver takes no kernels of this program'
golden 1 devices=0 least
quiet 'OK'
golden 0 pinned=0 least
says '^ran: .*; memory [1-9][0-9]* bytes not pinned$'

# A kernel that does nothing is a wrong result, with the check as without.
golden 1 wrong=gemm_nt_bf16_small least
says 'llama-bias: loss is off by'
op 0 wrong=gemm_nt_bf16 gemm_counts_rows
says '^ran: products own [1-9][0-9]* \(cuBLASLt was not asked for\); waits none; memory pinned$'
op 1 wrong=gemm_nt_bf16_small gemm_is_right

# A launch that fails is named by another call, or not at all. With the check it is named itself.
op 1 launches=4,error=700 gemm_rows_are_alone
says 'CUDA_ERROR_ILLEGAL_ADDRESS 700'
quiet 'SIFR_DEVICE_CHECK'
export SIFR_DEVICE_CHECK=1
op 1 launches=4,error=700 gemm_rows_are_alone
says 'kernel gemm_nt_fp32, finished at once \(SIFR_DEVICE_CHECK\): CUDA_ERROR_ILLEGAL_ADDRESS 700'
golden 1 launches=40,error=719 least
says 'kernel gemm_nn_bf16_small, finished at once .*: CUDA_ERROR_LAUNCH_FAILED 719'

# One that hangs as well. Without the check nothing is ever said.
hang() { SIFR_TEST_GPU=fake FAKE_GPU=hang=gemm_nt_bf16_small exec "$BUILD/tests/test_cuda_gemm" gemm_rows_are_alone; }
hang >out 2>err & run=$!
until_it shows 'kernel gemm_nt_bf16_small, finished at once \(SIFR_DEVICE_CHECK\): no end within 10 s'
kill -KILL $run && wait $run || :
unset SIFR_DEVICE_CHECK
hang >out 2>err & run=$!
sleep 3
kill -KILL $run || fail "a kernel that never ends has ended"
wait $run || :
quiet 'OK|FAILED'

# cuBLASLt is missing, fails, and computes wrongly. Own products go around each.
golden 0 cublaslt=0 by_cublaslt
says 'cuBLASLt .* was not found'
says 'SKIPPED'
golden 1 cublaslt=2 by_cublaslt
says 'cublasLtMatmul \(.* in bf16, algorithm .*\): CUBLAS_STATUS_EXECUTION_FAILED'
golden 1 cublaslt=3 by_cublaslt
says 'gpt2: .* off by'
for wish in cublaslt=0 cublaslt=2; do
    SIFR_CUDA_PRODUCTS=own golden 0 $wish by_cublaslt
    quiet 'SKIPPED'
    [ "$(grep -c '^ran: ' out)" = 1 ] || fail "one kind of device, and not one line"
    says '^ran: products own [1-9][0-9]* \(cuBLASLt was not asked for\)'
done
golden 0 cublaslt=1 by_cublaslt
says '^ran: products cuBLASLt 13.0.2 [1-9][0-9]*, own [1-9][0-9]* \(those of a head with labels, .*\); '

# Who waits for transfers: see cuda_flags.h.
waits() { # FAKE_GPU PATTERN
    FAKE_GPU=$1 expect 0 "$BUILD/tests/test_cuda_runs" one_wait_of_several_ranks
    says "^ran: .*; waits $2; memory pinned\$"
}
waits memops=1 'words [1-9][0-9]*, host [1-9][0-9]* \(the first step\)'
waits memops=0 'host [1-9][0-9]* \(cuStreamWaitValue32: CUDA_ERROR_NOT_SUPPORTED 801.*\)'
SIFR_DEVICE_WAITS=host waits memops=2 'host [1-9][0-9]* \(SIFR_DEVICE_WAITS=host\)'

# Rates of products say who computed.
speed() { # FAKE_GPU PATTERN
    FAKE_GPU=$1 expect 0 "$BUILD/tests/gpu_speed" 1e12 1e12
    says "^\\| small product, forward \\| bf16 \\| $2 \\|"
    says '^\| small product, forward \| fp32 \| own \|'
    says '^\| small attention, backward \| bf16 \| own \|'
}
speed cublaslt=1 cuBLASLt
speed cublaslt=0 own
says 'cuBLASLt .* was not found'
SIFR_CUDA_PRODUCTS=own speed cublaslt=2 own
expect 0 "$BUILD/tests/gpu_speed" 0 0 bf16
quiet 'fp32'
