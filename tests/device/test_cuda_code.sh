# What nvcc makes of the kernels for GPUs: no stack and no spilled registers, no more registers than
# cuda_limits.txt says, no atomic additions of floats (their order changes from run to run), and
# 16-byte accesses in kernels that stream. Kernels without limits are printed as lines to add, and
# must have no stack and no spills. Skipped where there is no nvcc. The other targets are checked by
# test_cuda_targets.sh.
# label: full, timeout: 600, not under sanitizers
targets=90a
code=$BUILD/cuda/code
. "$SOURCE/tests/support/cuda_code.sh"

# That it can fail: a kernel with each fault.
cat >bad.cu <<'CU'
extern "C" __global__ void __launch_bounds__(1024, 2) sifr_bad(float *y, const volatile int *x) {
    int kept[64]; // more than the 32 registers of so many threads
#pragma unroll
    for (int i = 0; i < 64; i++) kept[i] = x[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; i++) atomicAdd(y + kept[i], (float)kept[63 - i]);
}
CU
compile bad.cu bad
figures bad/report >bad.figures
accesses bad/*.ptx >bad.accesses
printf 'bad 255 255 255 2 255 255 load16\n' >bad.limits
if judge bad.figures bad.accesses bad.limits >bad.out; then fail "faults are not found"; fi
for want in 'bad: [0-9]* bytes of stack and [1-9][0-9]* of spills on sm_90a' \
    'bad: .* registers on sm_90a, limit 2' 'bad: no load16 on sm_90a' \
    'bad: an atomic operation on floats'; do
    grep -q "$want" bad.out || fail "not found: $want; but: $(cat bad.out)"
done

check_kernels
