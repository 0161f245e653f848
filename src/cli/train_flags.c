#include "cli/train_flags.h"

#include <stdio.h>
#include <string.h>

static const char *const headings[SIFR_CONFIG_GROUPS] = {
    [SIFR_CONFIG_RUN] = "What to train",
    [SIFR_CONFIG_LENGTH] = "Length, batch and rate",
    [SIFR_CONFIG_REPORT] = "Evaluation, checkpoints and reports",
    [SIFR_CONFIG_SPEED] = "Precision, memory and speed",
    [SIFR_CONFIG_RANKS] = "Ranks",
};

/* Whether its key is not "sifr." and its own name. */
static bool has_other_name(const sifr_config_flag *flag) {
    char path[80];
    snprintf(path, sizeof path, "sifr.%s", flag->name);
    for (char *c = path; *c; c++)
        if (*c == '-') *c = '_';
    return strcmp(path, flag->path) != 0;
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
    bool other = has_other_name(&row->flag);
    snprintf(row->help, sizeof row->help, "%s%s%s%s%s%s%s", row->flag.doc, show ? " Default: " : "",
             show ? fallback : "", show ? "." : "", other ? " In the config: " : "",
             other ? row->flag.path : "", other ? "." : "");
    return option;
}

static bool take_flag(size_t index, sifr_config_flag *out) {
    out->size = sizeof *out;
    return sifr_config_flag_at(index, out);
}

size_t cli_train_flags_make(cli_train_flags *flags, cli_option *options) {
    size_t used = 0;
    while (flags->count < CLI_TRAIN_FLAGS &&
           take_flag(flags->count, &flags->rows[flags->count].flag))
        flags->count++;
    for (int g = 0; g < SIFR_CONFIG_GROUPS; g++) {
        options[used++] = (cli_option){.name = headings[g], .kind = CLI_GROUP};
        for (size_t i = 0; i < flags->count; i++)
            if ((int)flags->rows[i].flag.group == g) options[used++] = make_option(&flags->rows[i]);
    }
    return used;
}

sifr_status cli_train_flags_set(const cli_train_flags *flags, sifr_config *config,
                                sifr_error *error) {
    for (size_t i = 0; i < flags->count; i++) {
        const cli_train_flag *row = &flags->rows[i];
        if (!row->given) continue;
        if (!row->flag.many) {
            BASE_TRY(sifr_config_set(config, row->flag.name, row->flag.argument ? row->text : NULL,
                                     error));
        }
        for (size_t w = 0; row->flag.many && w < row->list.count; w++)
            BASE_TRY(sifr_config_set(config, row->flag.name, row->list.items[w], error));
    }
    return SIFR_OK;
}

void cli_train_flags_free(cli_train_flags *flags) {
    for (size_t i = 0; i < flags->count; i++) cli_list_free(&flags->rows[i].list);
}
