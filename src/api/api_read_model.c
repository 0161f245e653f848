#include "api/api_read_model.h"

#include <string.h>

#include "device/device.h"
#include "device/kinds.h"

static bool find_precision(const char *name, sifr_precision *out) {
    static const sifr_precision all[] = {SIFR_FP32, SIFR_BF16, SIFR_FP16};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *out = all[i];
        if (strcmp(name, infer_precision_name(all[i])) == 0) return true;
    }
    return false;
}

sifr_status api_read_model_source(const api_read_model *read, sifr_device wish, infer_source *out,
                                  sifr_error *error) {
    *out = (infer_source){.model = read->model,
                          .adapter = read->adapter,
                          .precision_given = read->precision != NULL,
                          .device = wish,
                          .threads = (int)read->threads};
    if (!read->model) return base_fail(error, SIFR_USAGE, "--model: give the folder of a model");
    if (read->threads < 0 || read->threads > DEVICE_MOST_THREADS)
        return base_fail(error, SIFR_USAGE, "--threads %lld: give 0 to %d",
                         (long long)read->threads, DEVICE_MOST_THREADS);
    if (read->precision && !find_precision(read->precision, &out->precision))
        return base_fail(error, SIFR_USAGE,
                         "--precision %s is not supported (supported: fp32, bf16, fp16)",
                         read->precision);
    if (!read->device || device_kind_find(read->device, &out->device)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "--device %s is not supported (supported: auto, cpu, cuda)",
                     read->device);
}
