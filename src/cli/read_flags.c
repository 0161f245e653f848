#include "cli/read_flags.h"

void cli_read_options(cli_read_flags *read, cli_option *options) {
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

void cli_evaluate_options(cli_read_flags *read, cli_option *options) {
    cli_read_options(read, options);
    options[CLI_READ_OPTIONS] =
        (cli_option){.name = "device",
                     .kind = CLI_TEXT,
                     .argument = "auto|cpu|cuda",
                     .help = "what to compute on (default: auto, a GPU if this program can use one "
                             "here, else the CPU)",
                     .value = &read->device};
}
