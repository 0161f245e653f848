#include "cli/row_options.h"

#include <string.h>

void cli_row_options(cli_rows *rows, cli_option *options) {
    static const char as_train[] = "as of sifr train";
    const cli_option table[CLI_ROW_OPTIONS] = {
        {"data-type", CLI_TEXT, "TYPE", as_train, &rows->type, NULL, false},
        {"data-fields", CLI_LIST, "NAME=FIELD", as_train, &rows->fields, NULL, false},
        {"ignore-fields", CLI_LIST, "NAME", as_train, &rows->ignored, NULL, false},
        {"train-on", CLI_TEXT, "PART", as_train, &rows->train_on, NULL, false},
        {"roles-to-train", CLI_LIST, "ROLE", as_train, &rows->roles, NULL, false},
        {"train-on-eos", CLI_TEXT, "WHICH", as_train, &rows->eos, NULL, false},
        {"train-on-eot", CLI_TEXT, "WHICH", as_train, &rows->eot, NULL, false},
        {"eot-tokens", CLI_LIST, "TOKEN", as_train, &rows->eot_tokens, NULL, false},
        {"skip-bad-rows", CLI_FLAG, NULL, as_train, &rows->skip_bad_rows, NULL, false},
        {"chat-template", CLI_TEXT, "FILE", as_train, &rows->template, NULL, false},
        {"chat-template-kwargs", CLI_TEXT, "JSON", as_train, &rows->variables, NULL, false},
        {"chat-template-date", CLI_TEXT, "DATE", as_train, &rows->date, NULL, false},
    };
    memcpy(options, table, sizeof table);
}

sifr_status cli_rows_configure(const cli_rows *rows, sifr_config *config, sifr_error *error) {
    for (size_t i = 0; i < rows->fields.count; i++)
        BASE_TRY(sifr_config_set(config, "data-fields", rows->fields.items[i], error));
    for (size_t i = 0; i < rows->ignored.count; i++)
        BASE_TRY(sifr_config_set(config, "ignore-fields", rows->ignored.items[i], error));
    if (rows->type) BASE_TRY(sifr_config_set(config, "data-type", rows->type, error));
    if (rows->train_on) BASE_TRY(sifr_config_set(config, "train-on", rows->train_on, error));
    for (size_t i = 0; i < rows->roles.count; i++)
        BASE_TRY(sifr_config_set(config, "roles-to-train", rows->roles.items[i], error));
    if (rows->eos) BASE_TRY(sifr_config_set(config, "train-on-eos", rows->eos, error));
    if (rows->eot) BASE_TRY(sifr_config_set(config, "train-on-eot", rows->eot, error));
    for (size_t i = 0; i < rows->eot_tokens.count; i++)
        BASE_TRY(sifr_config_set(config, "eot-tokens", rows->eot_tokens.items[i], error));
    if (rows->template) BASE_TRY(sifr_config_set(config, "chat-template", rows->template, error));
    if (rows->variables)
        BASE_TRY(sifr_config_set(config, "chat-template-kwargs", rows->variables, error));
    if (rows->date) BASE_TRY(sifr_config_set(config, "chat-template-date", rows->date, error));
    if (rows->skip_bad_rows) BASE_TRY(sifr_config_set(config, "skip-bad-rows", NULL, error));
    return SIFR_OK;
}

void cli_rows_free(cli_rows *rows) {
    cli_list_free(&rows->fields);
    cli_list_free(&rows->ignored);
    cli_list_free(&rows->roles);
    cli_list_free(&rows->eot_tokens);
}
