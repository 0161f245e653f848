# Our declarations of NVIDIA's driver beside cuda.h: constants, sizes, names of functions, and their
# arguments. Skipped where there is no CUDA toolkit.
fail() { echo "$1" >&2; exit 1; }
for folder in "${CUDA_HOME:-/usr/local/cuda}" "$SOURCE/build/cuda-toolkit/nvidia/cu13" \
    "$(dirname "$(dirname "$(command -v nvcc || echo /none/none)")")"; do
    [ ! -f "$folder/include/cuda.h" ] || include=$folder/include
done
[ -n "${include:-}" ] || { echo "no cuda.h here"; exit 77; }
header=$SOURCE/src/device/cuda/cuda_driver.h

cat >check.c <<'C'
#include <cuda.h>
#include "device/cuda/cuda_driver.h"
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME(CUDA_OK, CUDA_SUCCESS);
SAME(CUDA_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(CUDA_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(CUDA_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME(CUDA_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(CUDA_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(CUDA_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
SAME(CUDA_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(CUDA_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CUDA_ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(CUDA_NVLINK_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME(CUDA_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED);
#if CUDA_VERSION >= 13000
SAME(CUDA_CONTAINED, CUDA_ERROR_CONTAINED);
SAME(CUDA_TENSOR_MEMORY_LEAK, CUDA_ERROR_TENSOR_MEMORY_LEAK);
#endif
SAME(CUDA_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(CUDA_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
SAME(CUDA_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(CUDA_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(CUDA_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(CUDA_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME(CUDA_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(CUDA_ASSERT, CUDA_ERROR_ASSERT);
SAME(CUDA_HARDWARE_STACK_ERROR, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(CUDA_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
SAME(CUDA_LAUNCH_TOO_LARGE, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
SAME(CUDA_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(CUDA_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY);
SAME(CUDA_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME(CUDA_MPS_CLIENT_TERMINATED, CUDA_ERROR_MPS_CLIENT_TERMINATED);
SAME(CUDA_EXTERNAL_DEVICE, CUDA_ERROR_EXTERNAL_DEVICE);
SAME(CUDA_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(CUDA_CAPTURE_UNMATCHED, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
SAME(CUDA_UNKNOWN, CUDA_ERROR_UNKNOWN);
SAME(CUDA_DEVICE_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CUDA_DEVICE_COPY_ENGINES, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
SAME(CUDA_DEVICE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CUDA_DEVICE_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CUDA_DEVICE_SHARED_BYTES, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(CUDA_FUNCTION_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(CUDA_FUNCTION_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(CUDA_FUNCTION_SHARED_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CUDA_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(CUDA_HOST_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
SAME(CUDA_HOST_DEVICE_MAP, CU_MEMHOSTALLOC_DEVICEMAP);
SAME(CUDA_HOST_DEVICE_MAP, CU_MEMHOSTREGISTER_DEVICEMAP);
SAME(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(CUDA_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(CUDA_EVENT_INTERPROCESS, CU_EVENT_INTERPROCESS);
SAME(CUDA_WAIT_AT_LEAST, CU_STREAM_WAIT_VALUE_GEQ);
SAME(CUDA_WAIT_EQUAL, CU_STREAM_WAIT_VALUE_EQ);
SAME(CUDA_IPC_PEER_ACCESS, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME(CUDA_CAPTURE_THIS_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(sizeof(cuda_uuid), sizeof(CUuuid));
SAME(sizeof(cuda_ipc_memory), sizeof(CUipcMemHandle));
SAME(sizeof(cuda_ipc_event), sizeof(CUipcEventHandle));

void fill(cuda_driver *driver);
void fill(cuda_driver *driver) {
C
sed -n '/define CUDA_DRIVER_FUNCTIONS/,/^typedef/p' "$header" | tr -d "\n\\\\" |
    grep -oE 'F\(cu[A-Za-z0-9]+, cu[A-Za-z0-9_]+,' | sed 's/F(//; s/,//g' >functions
[ "$(wc -l <functions)" -gt 45 ] || fail "only $(wc -l <functions) functions found in the table"
while read -r name symbol; do
    case $name in
    # Structs of our own for those that cuda.h has by value or by pointer; cuEventElapsedTime is an
    # earlier version than cuda.h's.
    cuDeviceGetUuid | cuIpc*Handle | cuEventElapsedTime) continue ;;
    esac
    echo "    driver->$name = $symbol;" >>check.c
done <functions
echo '}' >>check.c

# cuda.h declares the names that it maps to: the preprocessor tells which.
{
    echo '#include <cuda.h>'
    while read -r name symbol; do echo "@ \"$name\" $name \"$symbol\""; done <functions
} >names.c
cc -E -P -I"$include" names.c | sed -n 's/^@ //p' | tr -d '"' >mapped
[ "$(wc -l <mapped)" = "$(wc -l <functions)" ] || fail "the preprocessor lost a name: $(cat mapped)"
while read -r name mapped symbol; do
    [ "$name" != cuEventElapsedTime ] || continue
    [ "$mapped" = "$symbol" ] || fail "cuda.h maps $name to $mapped, the table has $symbol"
done <mapped

check() {
    cc -std=gnu17 -fsyntax-only -Wall -Werror -I"$include" -I"$SOURCE/include" -I"$SOURCE/src" "$@"
}
check check.c || fail "cuda_driver.h and $include/cuda.h differ"
# That it can fail: an argument of another type.
sed 's/driver->cuMemAlloc = .*/driver->cuMemAlloc = cuMemFree_v2;/' check.c >wrong.c
! check wrong.c 2>/dev/null || fail "a function of another type is not found"

# Results after which, as cuda.h says, the process must be started again.
awk '/^typedef enum cudaError_enum/ { inside = 1 }
    /^} CUresult/ { inside = 0 }
    !inside { next }
    /\/\*\*/ { text = "" }
    { text = text " " $0 }
    /CUDA_ERROR_[A-Z0-9_]* *=/ {
        gsub(/[ *]+/, " ", text)
        number = $0
        gsub(/.*= *|,.*/, "", number)
        if (text ~ /must be terminated and relaunched/) print number
        text = ""
    }' "$include/cuda.h" >lost
[ "$(wc -l <lost)" -ge 8 ] || fail "cuda.h names only $(wc -l <lost) results that end a process"
cat >is_lost.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include "device/cuda/cuda_driver.h"
int main(int count, char **words) {
    for (int i = 1; i < count; i++)
        if (!cuda_driver_is_lost((cuda_result)atoi(words[i]))) return printf("%s\n", words[i]), 1;
    return 0;
}
C
cc -std=gnu17 -D_GNU_SOURCE -I"$SOURCE/include" -I"$SOURCE/src" is_lost.c \
    "$SOURCE/src/device/cuda/cuda_driver.c" "$SOURCE/src/base/errors.c" -ldl -o is_lost
# shellcheck disable=SC2046 # several words
./is_lost $(cat lost) >out || fail "after the result $(cat out) the process must be started again"
! ./is_lost 1 >out || fail "a result that ends nothing is not told apart"
