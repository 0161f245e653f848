# Sourced by tests that need a driver of NVIDIA's, which does nothing but answer.

# driver FOLDER VERSION INIT [WITHOUT]: a libcuda.so.1 that serves VERSION, whose cuInit gives INIT,
# with every function of sifr's table but WITHOUT; one GPU, of compute capability $capability.6.
capability=8
driver() {
    mkdir -p "$1"
    tr -d '\n' <"$SOURCE/src/device/cuda/cuda_driver.h" |
        grep -oE 'F\(cu[A-Za-z0-9]+, cu[A-Za-z0-9_]+,' | sed 's/.*, //; s/,//' >symbols
    [ "$(wc -l <symbols)" -gt 45 ] || fail "only $(wc -l <symbols) functions found in the table"
    {
        echo '#include <stddef.h>
#include <string.h>'
        grep -vxE "${4:-none}|cuInit|cuDriverGetVersion|cuGetError.*|cuDeviceGet.*|cuDeviceTotal.*" symbols |
            sed 's/.*/int &(void) { return 999; }/'
        echo "int cuInit(unsigned f) { return f ? 1 : $3; }
int cuDriverGetVersion(int *v) { *v = $2; return 0; }"
        cat <<'C'
int cuGetErrorName(int e, const char **s) { (void)e; *s = "CUDA_ERROR_OF_TEST"; return 0; }
int cuGetErrorString(int e, const char **s) { (void)e; *s = "words of the driver"; return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return i != 0; }
int cuDeviceGetName(char *s, int n, int d) { (void)d; strncpy(s, "GPU of test", (size_t)n); return 0; }
int cuDeviceGetUuid_v2(void *u, int d) { (void)d; memset(u, 0xab, 16); return 0; }
int cuDeviceGetPCIBusId(char *s, int n, int d) { (void)d; strncpy(s, "0000:1B:00.0", (size_t)n); return 0; }
int cuDeviceTotalMem_v2(size_t *n, int d) { (void)d; *n = (size_t)80 << 30; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { (void)d; *v = a == 75 ? CAPABILITY : a == 76 ? 6 : 100; return 0; }
C
    } >driver.c
    cc -shared -fPIC -DCAPABILITY=$capability -o "$1/libcuda.so.1" driver.c
}
