#include "checkpoint/adapter_base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "formats/weights.h"

enum { CONFIG_LIMIT = 1 << 24 };

static const char *named_base(const model_lora *lora) {
    const char *name = json_string_value(json_object_get(lora->json, "base_model_name_or_path"));
    return name && *name ? name : NULL;
}

sifr_status checkpoint_find_adapter_base(const char *path, char out[BASE_PATH_LENGTH],
                                         sifr_error *error) {
    model_lora lora;
    out[0] = '\0';
    if (!base_has_file(path, "adapter_config.json") || formats_weights_there(path)) return SIFR_OK;
    BASE_TRY(model_lora_load(path, &lora, error));
    const char *base = named_base(&lora);
    bool there = base && strlen(base) < BASE_PATH_LENGTH && base_is_directory(base);
    if (there) snprintf(out, BASE_PATH_LENGTH, "%s", base);
    sifr_status status =
        there
            ? SIFR_OK
            : base_fail(error, SIFR_USAGE,
                        "%s: an adapter, whose base (%.200s) is not here: write the base's folder "
                        "into its adapter_config.json (base_model_name_or_path), or give that as "
                        "--model and this one as --adapter to a command that has them",
                        path, base ? base : "not named");
    model_lora_free(&lora);
    return status;
}

/* Behind the last slash that is not at the end. */
static size_t last_part(const char *path, const char **out) {
    size_t end = strlen(path), begin;
    while (end > 1 && path[end - 1] == '/') end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/'; begin--) continue;
    *out = path + begin;
    return end - begin;
}

static bool same_part(const char *a, const char *b) {
    const char *x, *y;
    size_t size = last_part(a, &x);
    return size > 0 && last_part(b, &y) == size && memcmp(x, y, size) == 0;
}

/* The Hub's cache holds OWNER/NAME in …/models--OWNER--NAME/snapshots/…. */
static bool is_cached(const char *folder, const char *name) {
    char wanted[BASE_PATH_LENGTH] = "models--";
    size_t used = strlen(wanted);
    for (; *name && used + 3 < sizeof wanted; name++) {
        if (*name == '/') wanted[used++] = '-';
        wanted[used++] = *name == '/' ? '-' : *name;
    }
    wanted[used] = '\0';
    return !*name && strstr(folder, wanted) != NULL;
}

static bool says_its_name(const char *folder, const char *name) {
    char path[BASE_PATH_LENGTH];
    json_t *json = NULL;
    if (base_path_join(path, folder, "config.json", NULL) != SIFR_OK ||
        base_json_load(path, CONFIG_LIMIT, &json, NULL) != SIFR_OK)
        return false;
    const char *own = json_string_value(json_object_get(json, "_name_or_path"));
    bool same = own && strcmp(own, name) == 0;
    json_decref(json);
    return same;
}

static bool hash_config(const char *folder, uint64_t *out) {
    char path[BASE_PATH_LENGTH], *text;
    size_t size;
    if (base_path_join(path, folder, "config.json", NULL) != SIFR_OK ||
        base_read_file(path, CONFIG_LIMIT, &text, &size, NULL) != SIFR_OK)
        return false;
    *out = base_hash(text, size);
    free(text);
    return true;
}

/* 1: the tensors have the same names and begin with the same bytes, 0: they do not, -1: they are of
 * different types, or cannot be opened. Two trainings of a model differ in the beginnings of what
 * they trained, and those of all tensors are read at once. */
static int compare_weights(const char *a, const char *b) {
    enum { BEGINNING = 4096 };
    formats_weights *x = NULL, *y = NULL;
    bool opened = formats_weights_open(a, &x, NULL) == SIFR_OK &&
                  formats_weights_open(b, &y, NULL) == SIFR_OK;
    size_t count = opened ? formats_weights_count(x) : 0;
    int same = opened ? formats_weights_count(y) == count : -1;
    for (size_t i = 0; same == 1 && i < count; i++) {
        const formats_tensor *first = formats_weights_at(x, i);
        const formats_tensor *other = formats_weights_find(y, first->name);
        uint64_t size = first->bytes < BEGINNING ? first->bytes : BEGINNING;
        if (!other || other->elements != first->elements)
            same = 0;
        else if (other->dtype != first->dtype)
            same = -1;
        else if (size)
            same = memcmp(other->data, first->data, (size_t)size) == 0;
    }
    formats_weights_close(x);
    formats_weights_close(y);
    return same;
}

static bool same_folder(const char *a, const char *b, bool merged) {
    uint64_t x, y;
    int weights = merged ? -1 : compare_weights(a, b);
    if (weights >= 0) return weights;
    return hash_config(a, &x) && hash_config(b, &y) && x == y;
}

const char *checkpoint_adapter_other_base(const model_lora *lora, const char *model, bool merged) {
    const char *name = named_base(lora);
    char here[BASE_PATH_LENGTH] = "";
    if (!name || strcmp(name, model) == 0) return NULL;
    char *real = realpath(model, NULL);
    if (base_is_directory(name)) {
        char *its = realpath(name, NULL);
        bool same = (real && its && strcmp(real, its) == 0) || same_folder(name, model, merged);
        free(its);
        free(real);
        return same ? NULL : name;
    }
    if (real) snprintf(here, sizeof here, "%s", real);
    free(real);
    bool same = same_part(name, here) || same_part(name, model) || is_cached(here, name) ||
                says_its_name(model, name);
    return same ? NULL : name;
}

void checkpoint_warn_adapter_base(const model_lora *lora, const char *adapter, const char *model,
                                  bool merged, const sifr_log *log) {
    const char *name = checkpoint_adapter_other_base(lora, model, merged);
    if (name)
        base_log(log, SIFR_LOG_WARNING,
                 "%s: its base is %.200s (base_model_name_or_path), not %s: what it learned is of "
                 "use only where these are the same weights",
                 adapter, name, model);
}
