#include "cli/train_flags.h"

#include <stdio.h>
#include <string.h>

size_t cli_train_flags_make(cli_train_flags *flags, cli_option *options) {
    while (flags->count < CLI_TRAIN_FLAGS &&
           config_flag_at(flags->count, &flags->rows[flags->count].flag)) {
        cli_train_flag *row = &flags->rows[flags->count];
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
        snprintf(row->help, sizeof row->help, "%s%s%s%s", row->flag.doc, show ? " (default " : "",
                 show ? fallback : "", show ? ")" : "");
        options[flags->count++] = option;
    }
    return flags->count;
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
