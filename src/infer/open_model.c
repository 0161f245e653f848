#include "infer/open_model.h"

#include <stdio.h>

#include "device/kinds.h"
#include "engine/check/device_choice.h"

/* With an adapter: that of the weights that it leaves alone. */
static sifr_precision stored_precision(const checkpoint_model *m) {
    size_t bf16 = 0, fp16 = 0, count = 0;
    for (size_t i = 0; i < (m->stored.file ? m->folder.model->weight_count : m->stored.count);
         i++) {
        if (m->stored.file && !m->folder.model->weights[i].frozen) continue;
        base_dtype type = m->stored.file ? formats_value_type(m->spans[m->first_span[i]].tensor)
                                         : m->stored.tensors[i].dtype;
        bf16 += type == BASE_BF16;
        fp16 += type == BASE_FP16;
        count++;
    }
    if (count == 0) return SIFR_FP32;
    return bf16 == count ? SIFR_BF16 : fp16 == count ? SIFR_FP16 : SIFR_FP32;
}

/* Generation is on the CPU. Where a run would use a GPU, that is said. */
static void say_device(const sifr_log *log) {
    device_found found;
    if (device_choose(SIFR_DEVICE_CUDA, 0, &found, NULL) != SIFR_OK) return;
    base_log(log, SIFR_LOG_INFO,
             "runs on the CPU, which is many times slower than the %s here: generation is not "
             "built for GPUs yet",
             found.gpu.name);
}

static sifr_status choose_device(sifr_device wish, infer_options *out, const sifr_log *log,
                                 sifr_error *error) {
    engine_device_choice choice;
    BASE_TRY(engine_choose_device_alone(wish, &choice, error));
    engine_say_choice(&choice, log);
    out->device = choice.kind;
    out->place = choice.place;
    return SIFR_OK;
}

sifr_status infer_open_model(const infer_source *source, checkpoint_model *model,
                             infer_options *options, const sifr_log *log, sifr_error *error) {
    BASE_TRY(checkpoint_model_open(source->model, source->adapter, model, log, error));
    model_task task = model->folder.config.task;
    if (task != MODEL_NEXT_TOKEN && options->mode != PLAN_EVALUATE)
        return base_fail(error, SIFR_USAGE,
                         "%s: a model for %s does not continue texts; one for %s is needed",
                         source->model, model_task_name(task), model_task_name(MODEL_NEXT_TOKEN));
    options->threads = source->threads;
    options->precision = source->precision_given ? source->precision : stored_precision(model);
    if (options->mode == PLAN_EVALUATE) return choose_device(source->device, options, log, error);
    say_device(log);
    return SIFR_OK;
}

const char *infer_precision_name(sifr_precision precision) {
    return base_dtype_name(device_dtype_of(precision));
}

const char *infer_ran_in(const infer_options *options, const infer_inference *inference,
                         char out[INFER_RAN_IN]) {
    bool gpu = options->device == SIFR_DEVICE_CUDA;
    snprintf(out, INFER_RAN_IN, "%s%s%s", infer_precision_name(options->precision), gpu ? ", " : "",
             gpu ? device_isa(infer_device(inference)) : "");
    return out;
}

void infer_say_slow(const infer_inference *inference, const sifr_log *log) {
    const device *dev = infer_device(inference);
    const char *notice = device_notice(dev);
    engine_say_unpinned(device_count(dev).unpinned_bytes, log);
    if (notice[0]) base_log(log, SIFR_LOG_WARNING, "%s", notice);
}
