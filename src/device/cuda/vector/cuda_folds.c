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

static int64_t parts_of(int64_t unit_blocks, int32_t ranks) {
    return (unit_blocks * ranks + FOLD_CHUNK - 1) / FOLD_CHUNK;
}

sifr_status cuda_fold_squares(device *dev, const device_squares *squares, double *sum,
                              sifr_error *error) {
    enum { WARPS = FOLD_THREADS / FOLD_LANES };
    const int64_t *unit_blocks = squares->unit_blocks;
    int32_t ranks = squares->ranks, units = squares->units;
    int64_t at = 0, part = 0;
    for (int32_t first = 0; first < units; first += FOLD_UNITS) {
        fold_squares_arguments arguments = {.squares = squares->squares,
                                            .parts = squares->parts,
                                            .own = squares->own,
                                            .ranks = ranks};
        int64_t begin = part;
        for (int32_t u = first; u < units && u < first + FOLD_UNITS; u++) {
            arguments.unit[arguments.units++] = (fold_unit){at, unit_blocks[u], part};
            at += unit_blocks[u];
            part += parts_of(unit_blocks[u], ranks);
        }
        cuda_launch launch = {.kernel = cuda_kernel_fold_squares,
                              .blocks = {(part - begin + WARPS - 1) / WARPS, 1, 1},
                              .threads = FOLD_THREADS,
                              .arguments = &arguments};
        BASE_TRY(cuda_launch_kernel(dev, &launch, error));
    }
    fold_parts_arguments arguments = {squares->parts, part, sum};
    return launch_one(dev, cuda_kernel_fold_parts, FOLD_THREADS, &arguments, error);
}

sifr_status cuda_decide(device *dev, const device_decision *decision, sifr_error *error) {
    return launch_one(dev, cuda_kernel_decide, 1, decision, error);
}
