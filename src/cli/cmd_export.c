/* sifr export: a model folder from a checkpoint. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "train/export.h"

static int print_result(const train_exported *made, const char *destination) {
    char parameters[32], bytes[32];
    printf("%s: %s parameters, %s of weights, from %s", destination,
           base_format_count(made->parameters, parameters), base_format_bytes(made->bytes, bytes),
           made->from);
    if (made->step >= 0) printf(" (step %lld)", (long long)made->step);
    putchar('\n');
    return SIFR_OK;
}

int cli_export(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "export",
        .operands = "SOURCE DEST",
        .summary =
            "Writes the model folder DEST from SOURCE: a checkpoint made by any number of ranks, "
            "the\noutput folder of a run, or a model folder. DEST must be new or empty.",
        .example = "sifr export run/checkpoint-200 model-200",
    };
    const char *format = "hf";
    const cli_option options[] = {
        {"format", CLI_TEXT, "hf", "format of DEST: hf, a Hugging Face folder (default: hf)",
         &format, NULL, false},
    };
    cli_list paths = {0};
    int code;
    if (!cli_parse(&usage, options, 1, argc, argv, &paths, &code)) return code;
    sifr_error error = {0};
    sifr_log log = cli_log(usage.name);
    train_exported made;
    if (paths.count != 2)
        code = cli_fail_with(usage.name, SIFR_USAGE,
                             "two paths are needed, SOURCE and DEST, not %zu; see `sifr %s --help`",
                             paths.count, usage.name);
    else if (strcmp(format, "hf") != 0)
        code = cli_fail_with(usage.name, SIFR_USAGE,
                             "--format %.40s is not supported yet (supported: hf)", format);
    else if (train_export(paths.items[0], paths.items[1], &log, &made, &error) != SIFR_OK)
        code = cli_fail(usage.name, &error);
    else
        code = print_result(&made, paths.items[1]);
    cli_list_free(&paths);
    return code;
}
