/* In front of what finds a GPU (linked with --wrap): the program of tests/cli/test_gpu_*.sh has one
 * that a fake driver plays, with the kernels over the shim, and a cuBLASLt and an NCCL that fakes
 * play. FAKE_GPU in the environment says what is wrong with them (support/cuda/fake_wishes.h). */
#include "device/cuda/cuda_device.h"
#include "support/cuda/fake_nccl.h"
#include "support/cuda/fake_wishes.h"

sifr_status __wrap_cuda_driver_open(cuda_driver *driver, int least, sifr_error *error);
const cuda_image *__wrap_cuda_images(size_t *count);
sifr_status __wrap_cuda_lt_open(int driver, cuda_lt *lt, sifr_error *error);
sifr_status __wrap_nccl_library_open(nccl_library *out, sifr_error *error);
int __wrap_cuda_images_version(void);
const char *__wrap_cuda_images_targets(void);

/* One for the process, which ends with it: a run opens its device more than once. */
sifr_status __wrap_cuda_driver_open(cuda_driver *driver, int least, sifr_error *error) {
    static cuda_driver fake;
    static bool is_open;
    if (!is_open) fake_wishes_open(&fake);
    is_open = true;
    *driver = fake;
    return cuda_driver_start(driver, least, error);
}

const cuda_image *__wrap_cuda_images(size_t *count) {
    static const cuda_image image = {.name = "fake", .data = "fake"};
    *count = 1;
    return &image;
}

sifr_status __wrap_cuda_lt_open(int driver, cuda_lt *lt, sifr_error *error) {
    (void)driver;
    return fake_wishes_lt(lt, error);
}

sifr_status __wrap_nccl_library_open(nccl_library *out, sifr_error *error) {
    fake_nccl_trouble trouble = {.version = (int)fake_wish("nccl", 22809),
                                 .init = (nccl_result)fake_wish("nccl_init", 0),
                                 .fail_after = (int)fake_wish("nccl_fails", 0)};
    if (!trouble.version) return base_fail(error, SIFR_FAILED, "NCCL (libnccl.so.2) was not found");
    fake_nccl_open(&trouble, out);
    return SIFR_OK;
}

int __wrap_cuda_images_version(void) {
    return 13000;
}

const char *__wrap_cuda_images_targets(void) {
    return "80 90a";
}
