/* The checkpoint folders of an output: listing them, and removing what killed runs left. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "checkpoint/checkpoint.h"

/* The step in "checkpoint-<step>", or -1. */
static int64_t step_of(const char *name) {
    static const char prefix[] = "checkpoint-";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return -1;
    const char *digits = name + sizeof prefix - 1;
    size_t length = strspn(digits, "0123456789");
    if (length == 0 || length > 18 || digits[length] || (digits[0] == '0' && length > 1)) return -1;
    return strtoll(digits, NULL, 10);
}

static int newest_first(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x > y ? -1 : x < y;
}

sifr_status checkpoint_list(const char *output, int64_t **steps, size_t *count, sifr_error *error) {
    char **names;
    size_t name_count;
    *steps = NULL;
    *count = 0;
    if (!base_is_directory(output)) return SIFR_OK;
    BASE_TRY(base_list_directory(output, &names, &name_count, error));
    sifr_status status = base_alloc(name_count + 1, sizeof **steps, steps, error);
    for (size_t i = 0; status == SIFR_OK && i < name_count; i++) {
        int64_t step = step_of(names[i]);
        if (step >= 0) (*steps)[(*count)++] = step;
    }
    if (*count) qsort(*steps, *count, sizeof **steps, newest_first);
    base_free_names(names, name_count);
    return status;
}

sifr_status checkpoint_clean(const char *output, sifr_error *error) {
    char **names, path[BASE_PATH_LENGTH];
    size_t count;
    if (!base_is_directory(output)) return SIFR_OK;
    BASE_TRY(base_list_directory(output, &names, &count, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        if (!strstr(names[i], ".tmp-")) continue;
        status = base_path_join(path, output, names[i], error);
        if (status == SIFR_OK) status = base_remove_tree(path, error);
    }
    base_free_names(names, count);
    return status;
}
