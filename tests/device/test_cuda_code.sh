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
extern "C" __global__ void sifr_bad_shared(float *y, const volatile int *x) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, (float)x[threadIdx.x]);
    __syncthreads();
    y[threadIdx.x] = sum;
}
CU
compile bad.cu bad
figures bad/report >bad.figures
accesses bad/*.ptx >bad.accesses
printf 'bad 255 255 255 2 255 255 load16 store16\nbad_shared 255 255 255 255 255 255\n' >bad.limits
found() { # IN WANTED…
    local text=$1 want
    shift
    for want in "$@"; do grep -q "$want" "$text" || fail "not found: $want; but: $(cat "$text")"; done
}
if judge bad.figures bad.accesses bad.limits >bad.out; then fail "faults are not found"; fi
in_both=('bad: no load16 on sm_90a' 'bad: no store16 on sm_90a' 'bad: an atomic operation on floats'
    'bad_shared: an atomic operation on floats')
found bad.out 'bad: [0-9]* bytes of stack and [1-9][0-9]* of spills on sm_90a' \
    'bad: .* registers on sm_90a, limit 2' "${in_both[@]}"
if [ -n "$disassembler" ]; then
    sass_accesses bad/*.cubin >bad.sass
    if judge_sass bad.figures bad.sass bad.limits >sass.out; then fail "faults are not found"; fi
    found sass.out "${in_both[@]}"
    grep -v '^bad .* code' bad.sass >less.sass
    if judge_sass bad.figures less.sass bad.limits >less.out; then fail "a kernel is not read"; fi
    found less.out 'bad: no machine code on sm_90a'
    echo text >bad/bad.cubin
    if (sass_accesses bad/bad.cubin) >failing 2>&1; then fail "a failing nvdisasm is not seen"; fi
fi

check_kernels
