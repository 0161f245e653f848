/* Makes of a base and an adapter what a run distils from: puts the adapter into the base, writes
 * the merged model as a GGUF file too, and scores rows of data with it.
 *     cc prepare_teacher.c $(pkg-config --cflags --libs sifr) -o prepare_teacher
 *     ./prepare_teacher llama adapter rows.txt merged
 * leaves merged/, merged.gguf and merged.safetensors, which `sifr train --distill` reads. */
#include <inttypes.h>
#include <sifr/sifr.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH_LENGTH = 4096, TOP_WORDS = 4 };

static sifr_status merge(sifr_context *context, char **argv, sifr_error *error) {
    sifr_merge_options options = {
        .size = sizeof options, .base = argv[1], .adapter = argv[2], .destination = argv[4]};
    sifr_merged made = {.size = sizeof made};
    sifr_status status = sifr_merge(context, &options, &made, error);
    if (status == SIFR_OK) printf("%s: %" PRId64 " modules merged\n", argv[4], made.modules);
    return status;
}

static sifr_status write_gguf(sifr_context *context, const char *model, sifr_error *error) {
    char path[PATH_LENGTH];
    snprintf(path, sizeof path, "%s.gguf", model);
    sifr_export_options options = {.size = sizeof options,
                                   .source = model,
                                   .destination = path,
                                   .format = "gguf",
                                   .type = "q8_0"};
    sifr_exported made = {.size = sizeof made};
    sifr_status status = sifr_export(context, &options, &made, error);
    if (status == SIFR_OK) printf("%s: %" PRIu64 " bytes\n", path, made.bytes);
    return status;
}

static sifr_status score(sifr_context *context, const char *model, const sifr_config *config,
                         sifr_error *error) {
    char path[PATH_LENGTH];
    snprintf(path, sizeof path, "%s.safetensors", model);
    sifr_score_options options = {.size = sizeof options,
                                  .model = model,
                                  .config = config,
                                  .output = path,
                                  .top_k = TOP_WORDS};
    sifr_scored made = {.size = sizeof made};
    sifr_status status = sifr_score(context, &options, &made, error);
    if (status == SIFR_OK) printf("%s: %" PRId64 " tokens\n", path, made.tokens);
    return status;
}

static sifr_status score_data(sifr_context *context, char **argv, sifr_error *error) {
    sifr_config *config = NULL;
    sifr_status status = sifr_config_create(&config, error);
    if (status == SIFR_OK) status = sifr_config_set(config, "data", argv[3], error);
    if (status == SIFR_OK) status = sifr_config_set(config, "seq-length", "16", error);
    if (status == SIFR_OK) status = score(context, argv[4], config, error);
    sifr_config_free(config);
    return status;
}

int main(int argc, char **argv) {
    sifr_error error = {0};
    sifr_context *context = NULL;
    if (argc != 5) {
        fprintf(stderr, "usage: prepare_teacher BASE ADAPTER DATA MODEL\n");
        return 2;
    }
    sifr_status status = sifr_context_create(NULL, &context, &error);
    if (status == SIFR_OK) status = merge(context, argv, &error);
    if (status == SIFR_OK) status = write_gguf(context, argv[4], &error);
    if (status == SIFR_OK) status = score_data(context, argv, &error);
    if (status != SIFR_OK) fprintf(stderr, "prepare_teacher: %s\n", error.message);
    sifr_context_free(context);
    return (int)status;
}
