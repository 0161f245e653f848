/* The CPU's functions for each kernel: prepare and run. */
#include "device/cpu/attention/attention.h"
#include "device/cpu/cpu.h"
#include "device/cpu/head/head_logits.h"
#include "device/cpu/head/head_loss.h"
#include "device/cpu/head/head_preference.h"
#include "device/cpu/head/head_targets.h"
#include "device/cpu/product/linear.h"
#include "device/cpu/product/orthogonalise.h"
#include "device/cpu/vector/adafactor.h"
#include "device/cpu/vector/dequantise.h"
#include "device/cpu/vector/exact_squares.h"
#include "device/cpu/vector/lamb.h"
#include "device/cpu/vector/magnitude.h"
#include "device/cpu/vector/vectors.h"

static const device_implementation rows[DEVICE_KERNELS] = {
#define DEVICE_KERNEL(NAME, name, check, access, cpu, gpu) [DEVICE_##NAME] = DEVICE_IMPLEMENTATIONS cpu,
#include "device/kernels.def"
};

const device_implementation *cpu_row_of(device_kernel kernel) {
    return &rows[kernel];
}
