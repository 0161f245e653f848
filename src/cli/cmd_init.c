/* sifr init: makes a model folder with random weights. Values are written as they are made, so the
 * model need not fit in memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/disk.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "device/device.h"
#include "engine/state/convert.h"
#include "formats/weights.h"
#include "model/model_config.h"
#include "model/registry.h"
#include "text/tokenizer/tokenizer.h"

enum {
    PIECE = 1 << 12,
    PIECES = 256
}; /* elements that one thread makes at a time; pieces in memory */

typedef struct init_fill {
    const sifr_model *model;
    uint64_t seed;
    base_dtype dtype;
    device *dev;
    uint8_t *buffer; /* of PIECES */
    size_t weight;   /* the tensor being made: its elements first … end - 1 */
    int64_t first, end;
} init_fill;

static void make_piece(void *argument, int64_t piece, int thread) {
    (void)thread;
    const init_fill *fill = argument;
    float values[PIECE];
    int64_t size = base_dtype_bytes(fill->dtype), at = piece * PIECE;
    int64_t count = base_min_i64(PIECE, fill->end - fill->first - at);
    model_initial_values(fill->model, fill->weight, fill->seed, fill->first + at, count, values);
    engine_from_fp32(fill->buffer + at * size, values, fill->dtype, count);
}

static sifr_status fill_weight(void *user, size_t position, formats_safetensors_writer *writer,
                               sifr_error *error) {
    init_fill *fill = user;
    const model_weight *w = &fill->model->weights[position];
    int64_t size = base_dtype_bytes(fill->dtype), elements = w->rows * w->columns;
    fill->weight = position;
    for (fill->first = 0; fill->first < elements; fill->first = fill->end) {
        fill->end = base_min_i64(elements, fill->first + PIECE * PIECES);
        int64_t count = fill->end - fill->first;
        device_parallel(fill->dev, (count + PIECE - 1) / PIECE, make_piece, fill);
        BASE_TRY(formats_safetensors_append(writer, fill->buffer, (size_t)(count * size), error));
    }
    return SIFR_OK;
}

static sifr_status write_weights(const sifr_model *model, const char *output, init_fill *fill,
                                 sifr_error *error) {
    formats_tensor_spec *specs;
    BASE_TRY(base_alloc(model->weight_count, sizeof *specs, &specs, error));
    for (size_t i = 0; i < model->weight_count; i++) {
        const model_weight *w = &model->weights[i];
        specs[i] = (formats_tensor_spec){.name = w->name, .dtype = fill->dtype};
        specs[i].rank = model_weight_shape(w, specs[i].shape);
    }
    sifr_status status =
        formats_weights_write(output, specs, model->weight_count, 0, fill_weight, fill, error);
    free(specs);
    return status;
}

/* The type in "torch_dtype" or "dtype" of config.json; fp32 if neither is there. */
static sifr_status stored_dtype(const char *config, base_dtype *out, sifr_error *error) {
    json_t *json;
    const char *name;
    BASE_TRY(base_json_load(config, 1 << 24, &json, error));
    sifr_status status = base_json_string(json, "torch_dtype", NULL, &name, config, error);
    if (status == SIFR_OK && !name) {
        status = base_json_string(json, "dtype", "float32", &name, config, error);
    }
    if (status == SIFR_OK) {
        *out = BASE_FP32;
        if (!strcmp(name, "bfloat16"))
            *out = BASE_BF16;
        else if (!strcmp(name, "float16"))
            *out = BASE_FP16;
        else if (strcmp(name, "float32") != 0) {
            status = base_fail(error, SIFR_USAGE,
                               "%s: torch_dtype \"%.40s\" is not supported yet (supported: "
                               "float32, bfloat16, float16)",
                               config, name);
        }
    }
    json_decref(json);
    return status;
}

/* A tokenizer that sifr does not read may be meant for other programs: it is copied unchecked. */
static sifr_status check_tokenizer(const char *folder, int64_t vocab_size, sifr_error *error) {
    text_tokenizer *tokenizer;
    if (text_tokenizer_load(folder, &tokenizer, NULL) != SIFR_OK) return SIFR_OK;
    int64_t size = text_tokenizer_vocab_size(tokenizer);
    text_tokenizer_free(tokenizer);
    if (size <= vocab_size) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: the tokenizer has %lld tokens, but \"vocab_size\" in config.json is "
                     "%lld; it must be at least %lld",
                     folder, (long long)size, (long long)vocab_size, (long long)size);
}

/* If the free space is not known, go on. */
static sifr_status check_space(const char *output, int64_t parameters, base_dtype dtype,
                               sifr_error *error) {
    base_disk disk;
    char need[32], have[32];
    int64_t bytes = parameters * base_dtype_bytes(dtype);
    if (base_disk_find(output, &disk, NULL) != SIFR_OK || (uint64_t)bytes <= disk.free_bytes)
        return SIFR_OK;
    return base_fail(error, SIFR_NO_MEMORY,
                     "%s: the weights take %s, but only %s are free; free some, or name a folder "
                     "on a larger disk",
                     output, base_format_bytes((uint64_t)bytes, need),
                     base_format_bytes(disk.free_bytes, have));
}

/* Copies the tokenizer's files. */
static sifr_status copy_tokenizer(const char *from, const char *to, sifr_error *error) {
    static const char *const names[] = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "tokenizer.model",
                                        "chat_template.jinja",
                                        "added_tokens.json",
                                        "vocab.txt",
                                        "spiece.model",
                                        "spm.model",
                                        "tiktoken.model",
                                        "sentencepiece.bpe.model"};
    size_t copied = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char source[BASE_PATH_LENGTH], target[BASE_PATH_LENGTH];
        BASE_TRY(base_path_join(source, from, names[i], error));
        BASE_TRY(base_path_join(target, to, names[i], error));
        if (!base_is_file(source)) continue;
        BASE_TRY(base_copy_file(source, target, error));
        copied++;
    }
    if (copied) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: there is no tokenizer in it (tokenizer.json, tokenizer.model, vocab.txt "
                     "...); name a folder that has one",
                     from);
}

/* Restores the folder to what it was before: absent or empty. */
static void undo(const char *output, bool there) {
    char **names = NULL, path[BASE_PATH_LENGTH];
    size_t count = 0;
    if (!there) {
        (void)!base_remove_tree(output, NULL);
    } else if (base_list_directory(output, &names, &count, NULL) == SIFR_OK) {
        for (size_t i = 0; i < count; i++)
            if (base_path_join(path, output, names[i], NULL) == SIFR_OK)
                (void)!base_remove_tree(path, NULL);
        base_free_names(names, count);
    }
}

static sifr_status initialise(const char *config_path, const char *output, const char *tokenizer,
                              uint64_t seed, int64_t *parameters, sifr_error *error) {
    model_config config;
    sifr_model *model = NULL;
    char file[BASE_PATH_LENGTH], target[BASE_PATH_LENGTH];
    sifr_status status;
    init_fill fill = {.seed = seed, .dtype = BASE_FP32};
    if (base_is_directory(config_path)) {
        BASE_TRY(base_path_join(file, config_path, "config.json", error));
    } else {
        snprintf(file, sizeof file, "%s", config_path);
    }
    BASE_TRY(model_config_load(file, &config, error));
    if (config.multimodal)
        return base_fail(error, SIFR_USAGE,
                         "%s: model_type \"%s\" has a tower, whose weights are not made here; take "
                         "the config.json of a text model (sifr export --text-model writes one)",
                         file, config.model_type);
    BASE_TRY(stored_dtype(file, &fill.dtype, error));
    BASE_TRY(model_from_config(&config, &model, error));
    fill.model = model;
    *parameters = sifr_model_parameters(model);
    char **names = NULL;
    size_t count = 0;
    bool there = base_is_directory(output), made = false;
    if (there) {
        BASE_TRY_GOTO(status, base_list_directory(output, &names, &count, error), done);
        base_free_names(names, count);
        if (count) {
            status = base_fail(error, SIFR_USAGE,
                               "%s: not empty; name a new folder, or empty this one", output);
            goto done;
        }
    }
    if (tokenizer && !base_is_directory(tokenizer)) {
        status =
            base_fail(error, SIFR_FAILED, "%s: there is no such folder; make it first", tokenizer);
        goto done;
    }
    if (tokenizer)
        BASE_TRY_GOTO(status, check_tokenizer(tokenizer, config.vocab_size, error), done);
    BASE_TRY_GOTO(status, check_space(output, *parameters, fill.dtype, error), done);
    BASE_TRY_GOTO(status, base_make_directories(output, error), done);
    made = true;
    BASE_TRY_GOTO(status, base_path_join(target, output, "config.json", error), done);
    BASE_TRY_GOTO(status, base_copy_file(file, target, error), done);
    if (tokenizer) BASE_TRY_GOTO(status, copy_tokenizer(tokenizer, output, error), done);
    if (tokenizer) /* beside the new config.json, which may name another class of tokenizer */
        BASE_TRY_GOTO(status, check_tokenizer(output, config.vocab_size, error), done);
    BASE_TRY_GOTO(status, base_alloc(PIECE * PIECES, sizeof(float), &fill.buffer, error), done);
    BASE_TRY_GOTO(status, device_open_cpu(0, NULL, &fill.dev, error), done);
    status = write_weights(model, output, &fill, error);
done:
    device_close(fill.dev);
    free(fill.buffer);
    if (status != SIFR_OK && made) undo(output, there);
    sifr_model_free(model);
    return status;
}

int cli_init(int argc, char **argv) {
    const char *config = NULL, *output = NULL, *tokenizer = NULL;
    int64_t seed = 42, parameters = 0;
    bool json = false;
    const cli_option options[] = {
        {"config", CLI_TEXT, "FILE", "config.json that describes the model", &config, NULL, true},
        {"output", CLI_TEXT, "DIR", "model folder to create", &output, NULL, true},
        {"tokenizer", CLI_TEXT, "DIR", "folder from which the tokenizer is copied", &tokenizer,
         NULL, false},
        {"seed", CLI_COUNT, "N", "seed of the random numbers (default: 42)", &seed, NULL, false},
        {"json", CLI_FLAG, NULL, "print the result as JSON", &json, NULL, false},
    };
    const cli_usage usage = {
        .name = "init",
        .summary = "Makes a model folder with random weights, initialised as in transformers 5.23.",
        .example = "sifr init --config config.json --tokenizer tok --output model"};
    int code;
    if (!cli_parse(&usage, options, sizeof options / sizeof *options, argc, argv, NULL, &code)) {
        return code;
    }
    sifr_error error = {0};
    if (initialise(config, output, tokenizer, (uint64_t)seed, &parameters, &error) != SIFR_OK) {
        return cli_fail("init", &error);
    }
    char count[32];
    if (json) {
        /* A path need not be valid UTF-8, but a JSON string must be. */
        json_t *result = json_pack("{s:o?, s:I, s:I}", "output", json_string(output), "parameters",
                                   (json_int_t)parameters, "seed", (json_int_t)seed);
        json_dumpf(result, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(result);
    } else {
        printf("%s: %s parameters, seed %lld\n", output, base_format_count(parameters, count),
               (long long)seed);
    }
    return SIFR_OK;
}
