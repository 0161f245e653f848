/* sifr export: a model folder or a universal checkpoint of DeepSpeed from a checkpoint, or a GGUF
 * file from a model folder. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "checkpoint/manifest.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "convert/export.h"
#include "engine/handle.h"
#include "formats/gguf/gguf_export.h"
#include "formats/weights.h"

static int print_result(const convert_exported *made, const char *destination) {
    char parameters[32], bytes[32];
    printf("%s: %s parameters, %s of weights, from %s", destination,
           base_format_count(made->parameters, parameters), base_format_bytes(made->bytes, bytes),
           made->from);
    if (made->step >= 0) printf(" (step %lld)", (long long)made->step);
    putchar('\n');
    return SIFR_OK;
}

static int export_folder(const char *source, const char *destination, bool average,
                         const char *name) {
    sifr_error error = {0};
    sifr_log log = cli_log(name);
    convert_exported made;
    if (convert_export(source, destination, average, &log, &made, &error) != SIFR_OK)
        return cli_fail(name, &error);
    return print_result(&made, destination);
}

static int export_universal(const char *source, const char *destination, const char *name) {
    sifr_error error = {0};
    sifr_log log = cli_log(name);
    convert_exported made;
    char parameters[32], bytes[32];
    if (convert_export_universal(source, destination, &log, &made, &error) != SIFR_OK)
        return cli_fail(name, &error);
    printf("%s: %s parameters, %s of fp32 weights and moments, from %s (step %lld)\n", destination,
           base_format_count(made.parameters, parameters), base_format_bytes(made.bytes, bytes),
           made.from, (long long)made.step);
    return SIFR_OK;
}

/* A folder that holds an adapter alone. */
static bool is_adapter(const char *source) {
    return base_has_file(source, ENGINE_ADAPTER_FILE) && !formats_weights_there(source);
}

/* What training and eval would not read the way that it is meant, the converter's few keys would
 * pass on in silence: the folder opens as theirs. */
static sifr_status check_model(const char *source, sifr_error *error) {
    engine_folder folder = {0};
    sifr_status status = engine_folder_open(source, &folder, error);
    engine_folder_close(&folder);
    return status;
}

static int export_gguf(const char *source, const char *destination, const char *type,
                       const char *name) {
    sifr_error error = {0};
    sifr_log log = cli_log(name);
    formats_gguf_type stored;
    formats_gguf_made made;
    char parameters[32], bytes[32];
    if (!formats_gguf_type_find(type ? type : "f16", &stored))
        return cli_fail_with(name, SIFR_USAGE,
                             "--type %.40s is not supported (supported: f32, f16, bf16, q8_0)",
                             type);
    if (is_adapter(source))
        return cli_fail_with(name, SIFR_USAGE,
                             "%s: an adapter, not a model; make a model folder of it first: sifr "
                             "merge BASE %s MERGED",
                             source, source);
    if (base_has_file(source, CHECKPOINT_MANIFEST))
        return cli_fail_with(name, SIFR_USAGE,
                             "%s: a checkpoint, not a model folder; make one of it first: sifr "
                             "export %s MODEL",
                             source, source);
    if (check_model(source, &error) != SIFR_OK ||
        formats_gguf_export(source, destination, stored, &log, &made, &error) != SIFR_OK)
        return cli_fail(name, &error);
    printf("%s: %s parameters, %s, from %s\n", destination,
           base_format_count(made.parameters, parameters), base_format_bytes(made.bytes, bytes),
           source);
    return SIFR_OK;
}

int cli_export(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "export",
        .operands = "SOURCE DEST",
        .summary =
            "Writes the model folder DEST from SOURCE: a checkpoint made by any number of ranks, "
            "the\noutput folder of a run, or a model folder. DEST must be new or empty. With "
            "--format gguf\nthe model folder SOURCE becomes the file DEST, which llama.cpp reads; "
            "with\n--format deepspeed-universal the checkpoint SOURCE becomes one that DeepSpeed "
            "goes on from.",
        .example = "sifr export run/checkpoint-200 model-200",
    };
    const char *format = "hf", *type = NULL;
    bool average = false;
    const cli_option options[] = {
        {"format", CLI_TEXT, "hf|gguf|deepspeed-universal",
         "format of DEST: hf, a Hugging Face folder, gguf, or DeepSpeed's universal checkpoint "
         "(default: hf)",
         &format, NULL, false},
        {"type", CLI_TEXT, "f32|f16|bf16|q8_0",
         "type of the matrices in a gguf file; vectors are f32 (default: f16)", &type, NULL, false},
        {"ema", CLI_FLAG, NULL,
         "the average of the weights (sifr.ema) of the checkpoint SOURCE, in place of the weights",
         &average, NULL, false},
    };
    cli_list paths = {0};
    int code;
    if (!cli_parse(&usage, options, 3, argc, argv, &paths, &code)) return code;
    if (paths.count != 2)
        code = cli_fail_with(usage.name, SIFR_USAGE,
                             "two paths are needed, SOURCE and DEST, not %zu; see `sifr %s --help`",
                             paths.count, usage.name);
    else if (average && strcmp(format, "hf") != 0)
        code = cli_fail_with(usage.name, SIFR_USAGE,
                             "--ema is for --format hf; make other formats from that folder");
    else if (strcmp(format, "gguf") == 0)
        code = export_gguf(paths.items[0], paths.items[1], type, usage.name);
    else if (strcmp(format, "hf") != 0 && strcmp(format, "deepspeed-universal") != 0)
        code = cli_fail_with(usage.name, SIFR_USAGE,
                             "--format %.40s is not supported yet (supported: hf, gguf, "
                             "deepspeed-universal)",
                             format);
    else if (type)
        code = cli_fail_with(usage.name, SIFR_USAGE,
                             "--type %.40s is for --format gguf; the others have types of their "
                             "own",
                             type);
    else if (strcmp(format, "hf") != 0)
        code = export_universal(paths.items[0], paths.items[1], usage.name);
    else
        code = export_folder(paths.items[0], paths.items[1], average, usage.name);
    cli_list_free(&paths);
    return code;
}
