# `sifr doctor` beside drivers and libraries of NVIDIA's that this test makes: what it lists, and
# what it says of a driver that does not serve.
fail() { echo "$1" >&2; exit 1; }
case $(uname -m) in x86_64 | aarch64) ;; *) exit 77 ;; esac
unset SIFR_CUDA_LIBRARIES CUDA_VISIBLE_DEVICES

. "$SOURCE/tests/support/nvidia_driver.sh"

# doctor FOLDER ARGUMENT…: with that driver
doctor() {
    folder=$1
    shift
    LD_LIBRARY_PATH=$PWD/$folder "$SIFR" doctor "$@"
}

driver serving 13000 0
doctor serving >text
grep -q '^GPU            GPU of test: compute capability 8.6, 80.0 GiB, GPU-abababab-abab-' text ||
    fail "$(cat text)"
grep -q "^CUDA driver    CUDA 13.0, $PWD/serving/libcuda.so.1$" text || fail "$(cat text)"
grep -q '^CUDA kernels   ' text || fail "$(cat text)"
if grep -q '^CUDA kernels   none' text; then
    grep -q '^- there is a GPU, and this program has no kernels for GPUs' text || fail "$(cat text)"
elif grep -q 'make CUDA=1' text; then
    fail "$(cat text)"
fi
doctor serving --json >json
for want in '"compute_capability": "8.6"' '"memory_bytes": 85899345920' '"driver": "13.0"' \
    '"bus": "0000:1B:00.0"' '"multiprocessors": 100'; do
    grep -qF "$want" json || fail "no $want in $(cat json)"
done

capability=7 driver older_gpu 13000 0
doctor older_gpu >text
grep -q "^- GPU of test has compute capability 7.6, and sifr's kernels need 8.0" text || fail "$(cat text)"

# What does not serve says so in a line of its own.
says() { doctor "$1" >text && grep -qE "^CUDA driver    .*$2" text || fail "$1: $(cat text)"; }
driver old 11040 0
says old "too old: it serves CUDA 11\.4, and sifr needs 1[23]\.[0-9]; install driver"
driver none 13000 100
says none "sees no GPU"
driver broken 13000 999
says broken "does not start: cuInit: CUDA_ERROR_OF_TEST 999 \(words of the driver\)"
driver part 13000 0 cuLaunchKernel
says part "part/libcuda\.so\.1 has no cuLaunchKernel"
[ -e /dev/nvidia0 ] || {
    # What a machine without a GPU lacks is nothing to mend.
    grep -q '^GPU            none; not needed' text || fail "$(cat text)"
    grep -q '^CUDA driver    needed only with a GPU: ' text || fail "$(cat text)"
    grep -q '^CUDA kernels   compiled\|^CUDA kernels   none; needed only with a GPU: ' text || fail "$(cat text)"
}

# Libraries: in the folders that are named, and among python3's packages; broken ones are passed by.
mkdir -p first second
echo nothing >first/libcublasLt.so.13
printf '#include <stddef.h>\nsize_t cublasLtGetVersion(void) { return 130102; }\n' >lt.c
cc -shared -fPIC -o second/libcublasLt.so.13 lt.c
SIFR_CUDA_LIBRARIES=$PWD/first:$PWD/second "$SIFR" doctor >text
grep -qF "cuBLASLt       13.1.2, $PWD/second/libcublasLt.so.13 (SIFR_CUDA_LIBRARIES)" text ||
    fail "$(cat text)"
# A driver of CUDA 12 runs no library of CUDA 13.
driver twelve 12080 0
SIFR_CUDA_LIBRARIES=$PWD/second doctor twelve >text
if grep -q '^CUDA driver    CUDA' text && grep -qF "$PWD/second" text; then fail "$(cat text)"; fi

# NCCL up to 2.8 counts in thousands.
for of in 2804:2.8.4 20900:2.9.0 21005:2.10.5; do
    mkdir -p nccl
    printf 'int ncclGetVersion(int *v) { *v = %s; return 0; }\n' "${of%:*}" >nccl.c
    cc -shared -fPIC -o nccl/libnccl.so.2 nccl.c
    SIFR_CUDA_LIBRARIES=$PWD/nccl "$SIFR" doctor >text
    grep -qF "NCCL           ${of#*:}, " text || fail "NCCL ${of#*:}: $(cat text)"
done

mkdir -p python/bin python/lib/python3.11/site-packages/nvidia/nccl/lib
printf '#!/bin/sh\n' >python/bin/python3
chmod +x python/bin/python3
printf 'int ncclGetVersion(int *v) { *v = 22809; return 0; }\n' >nccl.c
cc -shared -fPIC -o python/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2 nccl.c
PATH=$PWD/python/bin:$PATH "$SIFR" doctor >text
if [ ! -e /usr/local/cuda/lib64/libnccl.so.2 ] && ! /sbin/ldconfig -p | grep -q libnccl.so.2; then
    grep -q "^NCCL           2.28.9, .*/site-packages/nvidia/nccl/lib/libnccl.so.2 (python3's packages)" text ||
        fail "$(cat text)"
fi
grep -qE '^NCCL           ' text || fail "$(cat text)"
