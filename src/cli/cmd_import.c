/* sifr import: a config of another program as one of sifr; a checkpoint of DeepSpeed as a model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/template_choice.h"
#include "config/import/config_import.h"
#include "convert/import_checkpoint.h"
#include "train/prepare/run_task.h"

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
    if (status == SIFR_OK) status = train_check_adapters(&config, error);
    config_free(&config);
    return status;
}

static sifr_status write_config(const char *text, const char *path, sifr_error *error) {
    if (path) return base_write_file(path, text, strlen(text), error);
    fputs(text, stdout);
    return SIFR_OK;
}

static sifr_status import(const char *from, const config_import_options *how, const char *to,
                          sifr_error *error) {
    config_imported made;
    char *text = NULL;
    BASE_TRY(config_import_file(from, how, say_line, NULL, &made, error));
    sifr_status status = cli_settle_template(&made, how, say_line, NULL, error);
    if (status == SIFR_OK) status = config_json_text(made.config, &text, error);
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

static sifr_status import_checkpoint(const char *from, const char *files, const char *to,
                                     sifr_error *error) {
    convert_imported made;
    char parameters[32], source[64];
    sifr_log log = cli_log(name);
    BASE_TRY(convert_import_checkpoint(from, files, to, &log, &made, error));
    if (made.stage < 0)
        snprintf(source, sizeof source, "universal");
    else
        snprintf(source, sizeof source, "ZeRO stage %d, %zu rank%s", made.stage, made.ranks,
                 made.ranks == 1 ? "" : "s");
    printf("%s: %s parameters in %zu tensors, fp32, from %s (%s", to,
           base_format_count(made.parameters, parameters), made.weights, made.from, source);
    if (made.step >= 0) printf(", step %lld", (long long)made.step);
    puts(")");
    puts("the optimizer's moments are not taken over: a run from here begins with none");
    return SIFR_OK;
}

/* Which of the two ways is asked for. */
static int check_use(const char *config, const char *checkpoint, const char *model,
                     const config_import_options *how, size_t count) {
    if (!config == !checkpoint)
        return cli_fail_with(name, SIFR_USAGE,
                             "one of --config FILE and --checkpoint DIR is needed; see `sifr %s "
                             "--help`",
                             name);
    if (checkpoint && (how->from || how->allow_count))
        return cli_fail_with(name, SIFR_USAGE, "--from and --allow are for --config");
    if (model && !checkpoint) return cli_fail_with(name, SIFR_USAGE, "--model is for --checkpoint");
    if (checkpoint && count != 1)
        return cli_fail_with(name, SIFR_USAGE,
                             "--checkpoint writes one folder, OUT, not %zu; see `sifr %s --help`",
                             count, name);
    if (count > 1)
        return cli_fail_with(name, SIFR_USAGE, "one file is written, not %zu; see `sifr %s --help`",
                             count, name);
    return SIFR_OK;
}

int cli_import(int argc, char **argv) {
    static const cli_usage usage = {
        .name = name,
        .operands = "[OUT]",
        .summary =
            "Writes the config of sifr train that does what FILE says, to OUT or standard output: "
            "of\naxolotl's YAML, of accelerate's, or of the arguments of the Hugging Face Trainer, "
            "TRL,\nLLaMA-Factory or open-instruct, as YAML or JSON. A DeepSpeed config needs no "
            "import.\nStandard error says where each key went, and which are not taken over. A key "
            "that "
            "would\nmake it another training, and one that is not known, is refused.\n\n"
            "With --checkpoint: writes the model folder OUT with the fp32 weights of a checkpoint "
            "of\nDeepSpeed, ZeRO stages 0 to 3 or universal.",
        .example = "sifr import --config axolotl.yaml ds.json",
    };
    const char *config = NULL, *checkpoint = NULL, *model = NULL;
    config_import_options how = {0};
    cli_list allow = {0};
    const cli_option options[] = {
        {"config", CLI_TEXT, "FILE", "config of the other program", &config, NULL, false},
        {"from", CLI_TEXT, "PROGRAM",
         "whose config it is (default: found by its keys): " CONFIG_IMPORT_FROM, &how.from, NULL,
         false},
        {"allow", CLI_LIST, "KEY",
         "keys that pass, although they would be refused; all words behind it are keys, so OUT "
         "stands before it",
         &allow, NULL, false},
        {"checkpoint", CLI_TEXT, "DIR", "checkpoint of DeepSpeed (with the file latest)",
         &checkpoint, NULL, false},
        {"model", CLI_TEXT, "FOLDER",
         "folder with its config.json and tokenizer (default: that of the checkpoint)", &model,
         NULL, false},
    };
    cli_list paths = {0};
    sifr_error error = {0};
    int code;
    if (!cli_parse(&usage, options, 5, argc, argv, &paths, &code)) return code;
    const char *to = paths.count ? paths.items[0] : NULL;
    how.allow = allow.items;
    how.allow_count = allow.count;
    code = check_use(config, checkpoint, model, &how, paths.count);
    if (code == SIFR_OK && (checkpoint ? import_checkpoint(checkpoint, model, to, &error)
                                       : import(config, &how, to, &error)) != SIFR_OK)
        code = cli_fail(name, &error);
    cli_list_free(&paths);
    cli_list_free(&allow);
    return code;
}
