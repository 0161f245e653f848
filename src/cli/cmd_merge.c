/* sifr merge and sifr unmerge: an adapter put into its base, and taken out again. */
#include <stdio.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "sifr/convert.h"

static sifr_status merge(const char *name, const cli_list *paths, bool out, sifr_error *error) {
    sifr_merge_options options = {.size = sizeof options,
                                  .base = paths->items[0],
                                  .adapter = paths->items[1],
                                  .destination = paths->items[2],
                                  .unmerge = out};
    sifr_merged merged = {.size = sizeof merged};
    sifr_context *context;
    char parameters[32], bytes[32];
    BASE_TRY(cli_context(name, &context, error));
    sifr_status status = sifr_merge(context, &options, &merged, error);
    sifr_context_free(context);
    if (status == SIFR_OK)
        printf("%s: %s parameters, %s of weights; %lld modules %s%s\n", options.destination,
               base_format_count(merged.parameters, parameters),
               base_format_bytes(merged.bytes, bytes), (long long)merged.modules,
               out ? "without" : "with",
               out ? " the adapter, as the base had them but for rounding" : " the adapter");
    return status;
}

static int run(const cli_usage *usage, bool out, int argc, char **argv) {
    cli_list paths = {0};
    sifr_error error = {0};
    int code;
    if (!cli_parse(usage, NULL, 0, argc, argv, &paths, &code)) return code;
    if (paths.count != 3)
        code = cli_fail_with(usage->name, SIFR_USAGE,
                             "three paths are needed, %s, not %zu; see `sifr %s --help`",
                             usage->operands, paths.count, usage->name);
    else if (merge(usage->name, &paths, out, &error) != SIFR_OK)
        code = cli_fail(usage->name, &error);
    cli_list_free(&paths);
    return code;
}

int cli_merge(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "merge",
        .operands = "BASE ADAPTER DEST",
        .summary = "Writes the model folder DEST: the model folder BASE with the adapter folder "
                   "ADAPTER, of PEFT\nor of a run with sifr.lora, added to its weights. DEST must "
                   "be new or empty.",
        .example = "sifr merge llama run-lora llama-merged",
    };
    return run(&usage, false, argc, argv);
}

int cli_unmerge(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "unmerge",
        .operands = "MERGED ADAPTER DEST",
        .summary = "Writes the model folder DEST: the model folder MERGED without the adapter "
                   "folder ADAPTER that\nwas merged into it. Each changed weight was rounded "
                   "twice, so it is the base's but for that.",
        .example = "sifr unmerge llama-merged run-lora llama-again",
    };
    return run(&usage, true, argc, argv);
}
