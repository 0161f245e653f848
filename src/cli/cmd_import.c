/* sifr import: a config of another program as one of sifr; a checkpoint of DeepSpeed as a model. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "sifr/convert.h"

static const char name[] = "import";

static void say_line(void *user, const char *line) {
    (void)user;
    fprintf(stderr, "%s\n", line);
}

/* Whether a file holds this text, or nothing. */
static bool holds(const char *path, const char *text, size_t size) {
    base_map map;
    sifr_error reason;
    if (base_map_file(path, &map, &reason) != SIFR_OK) return false;
    bool same = map.size == 0 || (map.size == size && memcmp(map.data, text, size) == 0);
    base_unmap(&map);
    return same;
}

/* What is made has no mark of its own, since DeepSpeed reads it, too: a file that is there may be
 * somebody's config, and is left unless it is this one. */
static sifr_status write_config(const char *text, const char *path, bool overwrite,
                                sifr_error *error) {
    size_t size = strlen(text);
    if (path && !overwrite && base_is_file(path) && !holds(path, text, size))
        return base_fail(error, SIFR_USAGE,
                         "%s: the file exists and is not the config made; name another for OUT, or "
                         "give --overwrite",
                         path);
    if (path) return base_write_file(path, text, size, error);
    fputs(text, stdout);
    return SIFR_OK;
}

/* A mistyped OUT must not be the config that is read. */
static sifr_status check_output(const char *from, const char *to, sifr_error *error) {
    struct stat in, out;
    if (!to || !base_is_file(to)) return SIFR_OK;
    if (stat(from, &in) == 0 && stat(to, &out) == 0 && in.st_dev == out.st_dev &&
        in.st_ino == out.st_ino)
        return base_fail(error, SIFR_USAGE, "%s: it is the file of --config; name another for OUT",
                         to);
    return SIFR_OK;
}

static sifr_status import(sifr_context *context, const sifr_import_config_options *options,
                          const char *to, bool overwrite, sifr_error *error) {
    sifr_imported_config made = {.size = sizeof made};
    sifr_log log = cli_log(name);
    char *text = NULL;
    BASE_TRY(check_output(options->path, to, error));
    BASE_TRY(sifr_import_config(context, options, &text, &made, error));
    sifr_status status = write_config(text, to, overwrite, error);
    if (status == SIFR_OK) {
        base_log(&log, SIFR_LOG_INFO, "%s, read as %s: %lld key%s not taken over", options->path,
                 made.source, (long long)made.left, made.left == 1 ? "" : "s");
        status = sifr_import_check(text, strlen(text), to ? to : "the config made", error);
    }
    sifr_text_free(text);
    return status;
}

static sifr_status import_checkpoint(sifr_context *context,
                                     const sifr_import_checkpoint_options *options,
                                     sifr_error *error) {
    sifr_imported_checkpoint made = {.size = sizeof made};
    char parameters[32], source[64];
    BASE_TRY(sifr_import_checkpoint(context, options, &made, error));
    if (made.stage < 0)
        snprintf(source, sizeof source, "universal");
    else
        snprintf(source, sizeof source, "ZeRO stage %d, %lld rank%s", made.stage,
                 (long long)made.ranks, made.ranks == 1 ? "" : "s");
    printf("%s: %s parameters in %lld tensors, fp32, from %s (%s", options->destination,
           base_format_count(made.parameters, parameters), (long long)made.weights, made.from,
           source);
    if (made.step >= 0) printf(", step %lld", (long long)made.step);
    puts(")");
    puts("the optimizer's moments are not taken over: a run from here begins with none");
    return SIFR_OK;
}

/* Which of the two ways is asked for. */
static int check_use(const sifr_import_config_options *config,
                     const sifr_import_checkpoint_options *checkpoint, bool overwrite,
                     size_t count) {
    if (!config->path == !checkpoint->checkpoint)
        return cli_fail_with(name, SIFR_USAGE,
                             "one of --config FILE and --checkpoint DIR is needed; see `sifr %s "
                             "--help`",
                             name);
    if (checkpoint->checkpoint && (config->from || config->allow_count || overwrite))
        return cli_fail_with(name, SIFR_USAGE, "--from, --allow and --overwrite are for --config");
    if (checkpoint->model && !checkpoint->checkpoint)
        return cli_fail_with(name, SIFR_USAGE, "--model is for --checkpoint");
    if (checkpoint->checkpoint && count != 1)
        return cli_fail_with(name, SIFR_USAGE,
                             "--checkpoint writes one folder, OUT, not %zu; see `sifr %s --help`",
                             count, name);
    if (count > 1)
        return cli_fail_with(name, SIFR_USAGE, "one file is written, not %zu; see `sifr %s --help`",
                             count, name);
    return SIFR_OK;
}

static sifr_status run(const sifr_import_config_options *config,
                       const sifr_import_checkpoint_options *checkpoint, const char *to,
                       bool overwrite, sifr_error *error) {
    sifr_context *context;
    BASE_TRY(cli_context(name, &context, error));
    sifr_status status = checkpoint->checkpoint ? import_checkpoint(context, checkpoint, error)
                                                : import(context, config, to, overwrite, error);
    sifr_context_free(context);
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
            "import.\nStandard error says where each key went, and which are not taken over. A key "
            "that "
            "would\nmake it another training, and one that is not known, is refused.\n\n"
            "With --checkpoint: writes the model folder OUT with the fp32 weights of a checkpoint "
            "of\nDeepSpeed, ZeRO stages 0 to 3 or universal.",
        .example = "sifr import --config axolotl.yaml ds.json",
    };
    sifr_import_config_options config = {.size = sizeof config, .line = say_line};
    sifr_import_checkpoint_options checkpoint = {.size = sizeof checkpoint};
    cli_list allow = {0};
    bool overwrite = false;
    const cli_option options[] = {
        {"config", CLI_TEXT, "FILE", "config of the other program", &config.path, NULL, false},
        {"from", CLI_TEXT, "PROGRAM",
         "whose config it is (default: found by its keys): " SIFR_IMPORT_FROM, &config.from, NULL,
         false},
        {"allow", CLI_LIST, "KEY",
         "keys that pass, although they would be refused; all words behind it are keys, so OUT "
         "stands before it",
         &allow, NULL, false},
        {"overwrite", CLI_FLAG, NULL, "replace OUT", &overwrite, NULL, false},
        {"checkpoint", CLI_TEXT, "DIR", "checkpoint of DeepSpeed (with the file latest)",
         &checkpoint.checkpoint, NULL, false},
        {"model", CLI_TEXT, "FOLDER",
         "folder with its config.json and tokenizer (default: that of the checkpoint)",
         &checkpoint.model, NULL, false},
    };
    cli_list paths = {0};
    sifr_error error = {0};
    int code;
    if (!cli_parse(&usage, options, 6, argc, argv, &paths, &code)) return code;
    const char *to = paths.count ? paths.items[0] : NULL;
    config.allow = allow.items;
    config.allow_count = allow.count;
    checkpoint.destination = to;
    code = check_use(&config, &checkpoint, overwrite, paths.count);
    if (code == SIFR_OK && run(&config, &checkpoint, to, overwrite, &error) != SIFR_OK)
        code = cli_fail(name, &error);
    cli_list_free(&paths);
    cli_list_free(&allow);
    return code;
}
