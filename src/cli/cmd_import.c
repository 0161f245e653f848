/* sifr import: a config of another program as one of sifr. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "config/config_import.h"

static const char name[] = "import";

static void say_line(void *user, const char *line) {
    (void)user;
    fprintf(stderr, "%s\n", line);
}

/* Whether sifr train takes it; flags may still mend what it does not. */
static sifr_status try_config(const char *text, const char *path, sifr_error *error) {
    sifr_config config;
    BASE_TRY(config_create(&config, error));
    sifr_status status = config_parse(&config, text, strlen(text), path, error);
    if (status == SIFR_OK) status = config_resolve(&config, 1, error);
    config_free(&config);
    return status;
}

static sifr_status write_config(const char *text, const char *path, sifr_error *error) {
    if (path) return base_write_file(path, text, strlen(text), error);
    fputs(text, stdout);
    return SIFR_OK;
}

static sifr_status import(const char *from, const char *to, sifr_error *error) {
    config_imported made;
    char *text = NULL;
    BASE_TRY(config_import_file(from, say_line, NULL, &made, error));
    sifr_status status = config_json_text(made.config, &text, error);
    json_decref(made.config);
    if (status == SIFR_OK) status = write_config(text, to, error);
    if (status == SIFR_OK) {
        sifr_log log = cli_log(name);
        base_log(&log, SIFR_LOG_INFO, "%s, read as %s: %zu key%s not taken over", from, made.source,
                 made.left, made.left == 1 ? "" : "s");
        status = try_config(text, to ? to : "the config made", error);
    }
    free(text);
    return status;
}

int cli_import(int argc, char **argv) {
    static const cli_usage usage = {
        .name = name,
        .operands = "[OUT]",
        .summary =
            "Writes the config of sifr train that does what FILE says, to OUT or standard output: "
            "of\naxolotl's YAML, of accelerate's, or of the arguments of the Hugging Face Trainer, "
            "TRL,\nLLaMA-Factory or open-instruct, as YAML or JSON. A DeepSpeed config needs no "
            "import.\nStandard error says where each key went, and which are not taken over.",
        .example = "sifr import --config axolotl.yaml ds.json",
    };
    const char *config = NULL;
    const cli_option options[] = {
        {"config", CLI_TEXT, "FILE", "config of the other program", &config, NULL, true},
    };
    cli_list paths = {0};
    sifr_error error = {0};
    int code;
    if (!cli_parse(&usage, options, 1, argc, argv, &paths, &code)) return code;
    if (paths.count > 1)
        code = cli_fail_with(name, SIFR_USAGE, "one file is written, not %zu; see `sifr %s --help`",
                             paths.count, name);
    else if (import(config, paths.count ? paths.items[0] : NULL, &error) != SIFR_OK)
        code = cli_fail(name, &error);
    else
        code = SIFR_OK;
    cli_list_free(&paths);
    return code;
}
