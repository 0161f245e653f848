#include "cli/read_model.h"

#include <string.h>

enum { THREADS_LIMIT = 4096 };

void cli_read_model_options(cli_read_model *read, cli_option *options) {
    options[0] = (cli_option){.name = "model",
                              .kind = CLI_TEXT,
                              .argument = "DIR",
                              .help = "Hugging Face model folder",
                              .value = &read->model,
                              .required = true};
    options[1] = (cli_option){.name = "precision",
                              .kind = CLI_TEXT,
                              .argument = "fp32|bf16",
                              .help = "of weights and activations (that of the stored weights)",
                              .value = &read->precision};
    options[2] = (cli_option){.name = "threads",
                              .kind = CLI_COUNT,
                              .argument = "N",
                              .help = "threads (one for each core)",
                              .value = &read->threads};
}

static sifr_precision stored_precision(const formats_weights *weights) {
    size_t count = formats_weights_count(weights);
    for (size_t i = 0; i < count; i++) {
        if (formats_weights_at(weights, i)->dtype != FORMATS_BF16) return SIFR_FP32;
    }
    return count ? SIFR_BF16 : SIFR_FP32;
}

sifr_status cli_read_model_open(const cli_read_model *read, engine_folder *folder,
                                engine_inference_options *out, sifr_error *error) {
    if (read->threads > THREADS_LIMIT)
        return base_fail(error, SIFR_USAGE, "--threads %lld: at most %d", (long long)read->threads,
                         THREADS_LIMIT);
    bool bf16 = read->precision && strcmp(read->precision, "bf16") == 0;
    if (read->precision && !bf16 && strcmp(read->precision, "fp32") != 0)
        return base_fail(error, SIFR_USAGE, "--precision %s: fp32 and bf16 are built",
                         read->precision);
    BASE_TRY(engine_folder_open(read->model, folder, error));
    out->threads = (int)read->threads;
    out->precision = bf16 ? SIFR_BF16 : SIFR_FP32;
    if (!read->precision) out->precision = stored_precision(folder->weights);
    return SIFR_OK;
}

const char *cli_precision_name(sifr_precision precision) {
    return precision == SIFR_BF16 ? "bf16" : "fp32";
}
