#include "cli/read_model.h"

#include <string.h>

#include "device/kinds.h"

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

static bool find_precision(const char *name, sifr_precision *out) {
    static const sifr_precision all[] = {SIFR_FP32, SIFR_BF16, SIFR_FP16};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *out = all[i];
        if (strcmp(name, infer_precision_name(all[i])) == 0) return true;
    }
    return false;
}

sifr_status cli_read_model_source(const cli_read_model *read, sifr_device wish, infer_source *out,
                                  sifr_error *error) {
    *out = (infer_source){.model = read->model,
                          .adapter = read->adapter,
                          .precision_given = read->precision != NULL,
                          .device = wish,
                          .threads = (int)read->threads};
    if (read->threads > THREADS_LIMIT)
        return base_fail(error, SIFR_USAGE, "--threads %lld: at most %d", (long long)read->threads,
                         THREADS_LIMIT);
    if (read->precision && !find_precision(read->precision, &out->precision))
        return base_fail(error, SIFR_USAGE,
                         "--precision %s is not supported (supported: fp32, bf16, fp16)",
                         read->precision);
    if (!read->device || device_kind_find(read->device, &out->device)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "--device %s is not supported (supported: auto, cpu, cuda)",
                     read->device);
}

sifr_status cli_read_model_open(const cli_read_model *read, checkpoint_model *model,
                                infer_options *out, const sifr_log *log, sifr_error *error) {
    infer_source source;
    BASE_TRY(cli_read_model_source(read, out->device, &source, error));
    return infer_open_model(&source, model, out, log, error);
}
