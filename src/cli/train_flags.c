#include "cli/train_flags.h"

#include <stdio.h>
#include <string.h>

/* Headings of --help and their flags. Flags in no group come under the last heading. */
static const struct {
    const char *heading, *flags[16];
} groups[CLI_TRAIN_GROUPS] = {
    {"What to train", {"model", "data", "output", "freeze", "seed", "resume"}},
    {"Length, batch and rate",
     {"seq-length", "max-steps", "num-train-epochs", "learning-rate", "per-device-train-batch-size",
      "gradient-accumulation-steps"}},
    {"Evaluation, checkpoints and reports",
     {"eval-data", "eval-steps", "max-eval-windows", "save-steps", "save-total-limit",
      "logging-steps", "trace", "trace-steps"}},
    {"Precision, memory and speed",
     {"bf16", "fp16", "threads", "step-order", "gradient-order", "recompute", "activation-memory",
      "tile-tokens", "offload-state", "offload-gradients", "offload-activations", "nvme-path"}},
    {"Ranks", {"collective-timeout"}},
};

static size_t group_of(const char *flag) {
    for (size_t g = 0; g < CLI_TRAIN_GROUPS; g++)
        for (size_t i = 0; i < 16 && groups[g].flags[i]; i++)
            if (strcmp(groups[g].flags[i], flag) == 0) return g;
    return CLI_TRAIN_GROUPS - 1;
}

static cli_option make_option(cli_train_flag *row) {
    cli_option option = {.name = row->flag.name,
                         .kind = CLI_TEXT,
                         .argument = row->flag.argument,
                         .help = row->help,
                         .value = &row->text,
                         .given = &row->given};
    if (row->flag.many) option.kind = CLI_LIST, option.value = &row->list;
    if (!row->flag.argument) option.kind = CLI_FLAG, option.value = &row->on;
    const char *fallback = row->flag.fallback;
    bool show = fallback && strcmp(fallback, "false") != 0;
    snprintf(row->help, sizeof row->help, "%s%s%s%s", row->flag.doc, show ? " Default: " : "",
             show ? fallback : "", show ? "." : "");
    return option;
}

size_t cli_train_flags_make(cli_train_flags *flags, cli_option *options) {
    size_t used = 0;
    while (flags->count < CLI_TRAIN_FLAGS &&
           config_flag_at(flags->count, &flags->rows[flags->count].flag))
        flags->count++;
    for (size_t g = 0; g < CLI_TRAIN_GROUPS; g++) {
        options[used++] = (cli_option){.name = groups[g].heading, .kind = CLI_GROUP};
        for (size_t i = 0; i < flags->count; i++)
            if (group_of(flags->rows[i].flag.name) == g)
                options[used++] = make_option(&flags->rows[i]);
    }
    return used;
}

sifr_status cli_train_flags_set(const cli_train_flags *flags, sifr_config *config,
                                sifr_error *error) {
    for (size_t i = 0; i < flags->count; i++) {
        const cli_train_flag *row = &flags->rows[i];
        if (!row->given) continue;
        if (!row->flag.many) {
            BASE_TRY(
                config_set(config, row->flag.name, row->flag.argument ? row->text : NULL, error));
        }
        for (size_t w = 0; row->flag.many && w < row->list.count; w++)
            BASE_TRY(config_set(config, row->flag.name, row->list.items[w], error));
    }
    return SIFR_OK;
}

void cli_train_flags_free(cli_train_flags *flags) {
    for (size_t i = 0; i < flags->count; i++) cli_list_free(&flags->rows[i].list);
}
