#include "formats/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder_file.h"
#include "base/json.h"
#include "formats/config_edit.h"
#include "formats/fp8.h"

enum { CONFIG_FILE_LIMIT = 16 << 20 };

static bool ends_with(const char *text, const char *end) {
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

bool formats_is_weight_file(const char *name) {
    static const char *const ends[] = {".safetensors", ".bin", ".pt",   ".pth",     ".ckpt",
                                       ".gguf",        ".h5",  ".onnx", ".msgpack", ".index.json"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (ends_with(name, ends[i])) return true;
    }
    return false;
}

/* What a run keeps beside the model it trains: sifr's own, transformers' and DeepSpeed's. */
static bool is_run_record(const char *name) {
    static const char *const names[] = {
        "latest",           "metrics.jsonl", "metrics.csv",      "trainer_state.json",
        "sifr_config.json", "manifest.json", "latest_universal", "zero_to_fp32.py",
        "summary.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

/* What is written is not in 8 bits any more. */
static sifr_status take_out_fp8(char **text, size_t *size, const char *from, sifr_error *error) {
    static const formats_config_change change = {"quantization_config", NULL};
    json_t *json;
    char *changed;
    BASE_TRY(base_json_parse(*text, *size, from, &json, error));
    bool coded = formats_fp8_is(json_object_get(json, change.key));
    json_decref(json);
    if (!coded) return SIFR_OK;
    BASE_TRY(formats_config_edit(*text, *size, from, &change, 1, &changed, size, error));
    free(*text);
    *text = changed;
    return SIFR_OK;
}

static sifr_status set_dtype(char **text, size_t *size, const char *from, const char *dtype,
                             sifr_error *error) {
    char *changed;
    BASE_TRY(formats_config_set_dtype(*text, *size, from, dtype, &changed, size, error));
    free(*text);
    *text = changed;
    return SIFR_OK;
}

static sifr_status carry_config(const char *from, const char *to, const char *dtype,
                                sifr_error *error) {
    char *text;
    size_t size;
    BASE_TRY(base_read_file(from, CONFIG_FILE_LIMIT, &text, &size, error));
    sifr_status status = take_out_fp8(&text, &size, from, error);
    if (status == SIFR_OK && dtype) status = set_dtype(&text, &size, from, dtype, error);
    if (status == SIFR_OK) status = base_write_file(to, text, size, error);
    free(text);
    return status;
}

/* Chat templates beyond the first have a folder of their own. */
static const char templates[] = "additional_chat_templates";

static sifr_status carry_file(const char *source, const char *to, const char *name,
                              const char *dtype, sifr_error *error) {
    char target[BASE_PATH_LENGTH];
    BASE_TRY(base_path_join(target, to, name, error));
    if (!strcmp(name, "config.json")) return carry_config(source, target, dtype, error);
    return base_copy_file(source, target, error);
}

static sifr_status carry_directory(const char *source, const char *to, const char *name,
                                   const sifr_log *log, sifr_error *error) {
    char target[BASE_PATH_LENGTH], path[BASE_PATH_LENGTH], **names;
    size_t count;
    if (strcmp(name, templates) != 0) {
        base_log(log, SIFR_LOG_INFO, "%s: the directory is not copied", source);
        return SIFR_OK;
    }
    BASE_TRY(base_path_join(target, to, name, error));
    BASE_TRY(base_make_directories(target, error));
    BASE_TRY(base_list_directory(source, &names, &count, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        if (!ends_with(names[i], ".jinja")) continue;
        status = base_folder_file(source, names[i], path, error);
        if (status == SIFR_OK) status = carry_file(path, target, names[i], NULL, error);
    }
    base_free_names(names, count);
    return status;
}

sifr_status formats_folder_carry(const char *from, const char *to, const char *dtype,
                                 const sifr_log *log, sifr_error *error) {
    char source[BASE_PATH_LENGTH], target[BASE_PATH_LENGTH], **names;
    size_t count;
    if (realpath(from, source) && realpath(to, target) && !strcmp(source, target)) {
        return base_fail(error, SIFR_USAGE, "%s: a folder cannot be copied into itself", from);
    }
    BASE_TRY(base_list_directory(from, &names, &count, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        if (formats_is_weight_file(names[i])) {
            if (!strstr(names[i], ".safetensors")) {
                base_log(log, SIFR_LOG_INFO, "%s: %s holds other weights and is not copied", from,
                         names[i]);
            }
            continue;
        }
        if (is_run_record(names[i])) continue;
        status = base_folder_file(from, names[i], source, error);
        if (status != SIFR_OK) break;
        status = base_is_directory(source) ? carry_directory(source, to, names[i], log, error)
                                           : carry_file(source, to, names[i], dtype, error);
    }
    base_free_names(names, count);
    return status;
}
