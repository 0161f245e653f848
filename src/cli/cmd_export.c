/* sifr export: a model folder or a universal checkpoint of DeepSpeed from a checkpoint, or a GGUF
 * file from a model folder. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "sifr/convert.h"

static void print_result(const sifr_exported *made, const char *destination, const char *format) {
    const char *what = strcmp(format, "hf") == 0     ? " of weights"
                       : strcmp(format, "gguf") == 0 ? ""
                                                     : " of fp32 weights and moments";
    char parameters[32], bytes[32];
    printf("%s: %s parameters, %s%s, from %s", destination,
           base_format_count(made->parameters, parameters), base_format_bytes(made->bytes, bytes),
           what, made->from);
    if (made->step >= 0) printf(" (step %lld)", (long long)made->step);
    putchar('\n');
}

static int export(const char *source, const char *destination, sifr_export_options *options,
                  const char *name) {
    sifr_error error = {0};
    sifr_exported made = {.size = sizeof made};
    sifr_context *context = NULL;
    options->source = source;
    options->destination = destination;
    sifr_status status = cli_context(name, &context, &error);
    if (status == SIFR_OK) status = sifr_export(context, options, &made, &error);
    sifr_context_free(context);
    if (status != SIFR_OK) return cli_fail(name, &error);
    print_result(&made, destination, options->format);
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
    sifr_export_options wanted = {.size = sizeof wanted, .format = "hf"};
    const cli_option options[] = {
        {"format", CLI_TEXT, "hf|gguf|deepspeed-universal",
         "format of DEST: hf, a Hugging Face folder, gguf, or DeepSpeed's universal checkpoint "
         "(default: hf)",
         &wanted.format, NULL, false},
        {"type", CLI_TEXT, "f32|f16|bf16|q8_0",
         "type of the matrices in a gguf file; vectors are f32 (default: f16)", &wanted.type, NULL,
         false},
        {"ema", CLI_FLAG, NULL,
         "the average of the weights (sifr.ema) of the checkpoint SOURCE, in place of the weights",
         &wanted.average, NULL, false},
        {"text-model", CLI_FLAG, NULL,
         "of a folder with a vision or audio tower, the text model alone, as a folder of its own",
         &wanted.text_model, NULL, false},
    };
    cli_list paths = {0};
    int code;
    if (!cli_parse(&usage, options, 4, argc, argv, &paths, &code)) return code;
    if (paths.count != 2)
        code = cli_fail_with(usage.name, SIFR_USAGE,
                             "two paths are needed, SOURCE and DEST, not %zu; see `sifr %s --help`",
                             paths.count, usage.name);
    else
        code = export(paths.items[0], paths.items[1], &wanted, usage.name);
    cli_list_free(&paths);
    return code;
}
