/* The CPU's functions for each kernel: prepare and run. */
#include "device/cpu/attention/attention.h"
#include "device/cpu/cpu.h"
#include "device/cpu/delta/delta.h"
#include "device/cpu/head/head_logits.h"
#include "device/cpu/head/head_loss.h"
#include "device/cpu/head/head_preference.h"
#include "device/cpu/head/head_targets.h"
#include "device/cpu/product/linear.h"
#include "device/cpu/product/linear_exact.h"
#include "device/cpu/product/orthogonalise.h"
#include "device/cpu/product/product_few.h"
#include "device/cpu/vector/adafactor.h"
#include "device/cpu/vector/dequantise.h"
#include "device/cpu/vector/exact_squares.h"
#include "device/cpu/vector/lamb.h"
#include "device/cpu/vector/magnitude.h"
#include "device/cpu/vector/short_conv.h"
#include "device/cpu/vector/vectors.h"
#include "device/cpu/vector/xielu.h"
#include "device/implementation.h"

static const device_implementations rows[DEVICE_KERNELS] = {
#define DEVICE_KERNEL(NAME, name, check, access, cpu, gpu)                                         \
    [DEVICE_##NAME] = DEVICE_IMPLEMENTATIONS cpu,
#include "device/kernels.def"
};

sifr_status cpu_prepare(device *dev, device_call *call, sifr_error *error) {
    return device_prepare_first(&rows[call->kernel], dev, call, error);
}

sifr_status cpu_run(device *dev, const device_call *call, sifr_error *error) {
    return rows[call->kernel].each[call->implementation].run(dev, call, error);
}
