#include "device/cuda/vector/cuda_folds.h"

static sifr_status launch_one(device *dev, cuda_kernel kernel, uint32_t threads,
                              const void *arguments, sifr_error *error) {
    cuda_launch launch = {
        .kernel = kernel, .blocks = {1, 1, 1}, .threads = threads, .arguments = arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

sifr_status cuda_fold_losses(device *dev, const float *losses, int64_t rows, double *sum,
                             sifr_error *error) {
    fold_loss_arguments arguments = {losses, rows, sum};
    return launch_one(dev, cuda_kernel_fold_loss, FOLD_THREADS, &arguments, error);
}

sifr_status cuda_decide(device *dev, const device_decision *decision, sifr_error *error) {
    return launch_one(dev, cuda_kernel_decide, DECIDE_THREADS, decision, error);
}
