/* sifr merge and sifr unmerge: an adapter put into its base, and taken out again. */
#include <stdio.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "convert/merge.h"

static bool is_swapped(const char *model, const char *adapter) {
    static const char config[] = "adapter_config.json";
    return base_has_file(model, config) && !base_has_file(adapter, config);
}

static int run(const cli_usage *usage, bool out, int argc, char **argv) {
    cli_list paths = {0};
    sifr_error error = {0};
    sifr_log log = cli_log(usage->name);
    convert_merged merged;
    char parameters[32], bytes[32];
    int code;
    if (!cli_parse(usage, NULL, 0, argc, argv, &paths, &code)) return code;
    if (paths.count != 3)
        code = cli_fail_with(usage->name, SIFR_USAGE,
                             "three paths are needed, %s, not %zu; see `sifr %s --help`",
                             usage->operands, paths.count, usage->name);
    else if (is_swapped(paths.items[0], paths.items[1]))
        code = cli_fail_with(usage->name, SIFR_USAGE,
                             "%s is the adapter and %s is none; the order is %s", paths.items[0],
                             paths.items[1], usage->operands);
    else if (convert_merge(paths.items[0], paths.items[1], paths.items[2], out, &log, &merged,
                           &error) != SIFR_OK)
        code = cli_fail(usage->name, &error);
    else
        printf("%s: %s parameters, %s of weights; %lld modules %s%s\n", paths.items[2],
               base_format_count(merged.parameters, parameters),
               base_format_bytes(merged.bytes, bytes), (long long)merged.modules,
               out ? "without" : "with",
               out ? " the adapter, as the base had them but for rounding" : " the adapter");
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
