#include "cli/read_model.h"

#include <stdio.h>
#include <string.h>

#include "device/kinds.h"
#include "engine/check/device_choice.h"
#include "engine/state/convert.h"

enum { THREADS_LIMIT = 4096 };

void cli_read_model_options(cli_read_model *read, cli_option *options) {
    options[0] =
        (cli_option){.name = "model",
                     .kind = CLI_TEXT,
                     .argument = "DIR",
                     .help = "Hugging Face model folder, checkpoint, or output folder of a run",
                     .value = &read->model,
                     .required = true};
    options[1] = (cli_option){
        .name = "precision",
        .kind = CLI_TEXT,
        .argument = "fp32|bf16|fp16",
        .help = "type of weights and activations (default: the type of the stored weights)",
        .value = &read->precision};
    options[2] = (cli_option){.name = "threads",
                              .kind = CLI_COUNT,
                              .argument = "N",
                              .help = "number of threads (default: one for each core)",
                              .value = &read->threads};
    options[3] = (cli_option){.name = "adapter",
                              .kind = CLI_TEXT,
                              .argument = "DIR",
                              .help = "adapter folder, of PEFT or of a run with sifr.lora",
                              .value = &read->adapter};
}

void cli_evaluate_options(cli_read_model *read, cli_option *options) {
    cli_read_model_options(read, options);
    options[CLI_READ_MODEL_OPTIONS] =
        (cli_option){.name = "device",
                     .kind = CLI_TEXT,
                     .argument = "auto|cpu|cuda",
                     .help = "what to compute on (default: auto, a GPU if this program can use one "
                             "here, else the CPU)",
                     .value = &read->device};
}

/* With an adapter: that of the weights that it leaves alone. */
static sifr_precision stored_precision(const checkpoint_model *m) {
    size_t bf16 = 0, fp16 = 0, count = 0;
    for (size_t i = 0; i < (m->stored.file ? m->folder.model->weight_count : m->stored.count);
         i++) {
        if (m->stored.file && !m->folder.model->weights[i].frozen) continue;
        base_dtype type =
            m->stored.file ? m->spans[m->first_span[i]].tensor->dtype : m->stored.tensors[i].dtype;
        bf16 += type == BASE_BF16;
        fp16 += type == BASE_FP16;
        count++;
    }
    if (count == 0) return SIFR_FP32;
    return bf16 == count ? SIFR_BF16 : fp16 == count ? SIFR_FP16 : SIFR_FP32;
}

static bool find_precision(const char *name, sifr_precision *out) {
    static const sifr_precision all[] = {SIFR_FP32, SIFR_BF16, SIFR_FP16};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *out = all[i];
        if (strcmp(name, cli_precision_name(all[i])) == 0) return true;
    }
    return false;
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

sifr_status cli_read_model_open(const cli_read_model *read, checkpoint_model *model,
                                infer_options *out, const sifr_log *log, sifr_error *error) {
    sifr_device wish = out->device;
    if (read->threads > THREADS_LIMIT)
        return base_fail(error, SIFR_USAGE, "--threads %lld: at most %d", (long long)read->threads,
                         THREADS_LIMIT);
    if (read->precision && !find_precision(read->precision, &out->precision))
        return base_fail(error, SIFR_USAGE,
                         "--precision %s is not supported (supported: fp32, bf16, fp16)",
                         read->precision);
    if (read->device && !device_kind_find(read->device, &wish))
        return base_fail(error, SIFR_USAGE,
                         "--device %s is not supported (supported: auto, cpu, cuda)", read->device);
    BASE_TRY(checkpoint_model_open(read->model, read->adapter, model, log, error));
    const model_config *config = &model->folder.config;
    if (config->task != MODEL_NEXT_TOKEN && out->mode != PLAN_EVALUATE)
        return base_fail(
            error, SIFR_USAGE, "%s: a model for %s does not continue texts; one for %s is needed",
            read->model, model_task_name(config->task), model_task_name(MODEL_NEXT_TOKEN));
    out->threads = (int)read->threads;
    if (!read->precision) out->precision = stored_precision(model);
    if (out->mode == PLAN_EVALUATE) return choose_device(wish, out, log, error);
    say_device(log);
    return SIFR_OK;
}

const char *cli_precision_name(sifr_precision precision) {
    return base_dtype_name(device_dtype_of(precision));
}

const char *cli_ran_in(const infer_options *options, const infer_inference *inference,
                       char out[CLI_RAN_IN]) {
    bool gpu = options->device == SIFR_DEVICE_CUDA;
    snprintf(out, CLI_RAN_IN, "%s%s%s", cli_precision_name(options->precision), gpu ? ", " : "",
             gpu ? device_isa(infer_device(inference)) : "");
    return out;
}

const char *cli_device_name(const infer_options *options) {
    return device_kind_name(options->device);
}

void cli_say_slow(const infer_inference *inference, const sifr_log *log) {
    const device *dev = infer_device(inference);
    const char *notice = device_notice(dev);
    engine_say_unpinned(device_count(dev).unpinned_bytes, log);
    if (notice[0]) base_log(log, SIFR_LOG_WARNING, "%s", notice);
}
