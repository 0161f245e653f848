/* The weights of each family that no_decay "transformers" leaves out are those that the Trainer
 * leaves out (tests/golden/make_no_decay.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engine/handle.h"
#include "optim/optim.h"

/* Whether a name ends with the parts of the other: present names may have a prefix more. */
static bool is_tail(const char *name, const char *tail) {
    size_t length = strlen(name), own = strlen(tail);
    if (own > length || strcmp(name + length - own, tail) != 0) return false;
    return own == length || name[length - own - 1] == '.';
}

static bool is_listed(const json_t *list, const char *name) {
    const json_t *item;
    size_t index;
    json_array_foreach(list, index, item) {
        const char *text = json_string_value(item);
        if (is_tail(text, name) || is_tail(name, text)) return true;
    }
    return false;
}

static size_t check_folder(const char *path, const json_t *list) {
    engine_folder folder;
    sifr_error error = {0};
    size_t found = 0;
    if (engine_folder_open(path, &folder, &error)) fail_msg("%s", error.message);
    bool *undecayed = calloc(folder.model->weight_count, sizeof *undecayed);
    optim_mark_undecayed(folder.model, undecayed);
    for (size_t w = 0; w < folder.model->weight_count; w++) {
        const char *name = folder.model->weights[w].name;
        if (undecayed[w] != is_listed(list, name))
            fail_msg("%s: %s %s", path, name, undecayed[w] ? "should decay" : "should not decay");
        found += undecayed[w];
    }
    free(undecayed);
    engine_folder_close(&folder);
    return found;
}

static void families(void **state) {
    (void)state;
    const char *source = getenv("SOURCE") ? getenv("SOURCE") : ".", *place;
    char path[1024];
    json_t *all, *list;
    sifr_error error = {0};
    int folders = 0;
    snprintf(path, sizeof path, "%s/tests/golden/no_decay.json", source);
    if (base_json_load(path, 1 << 20, &all, &error)) fail_msg("%s", error.message);
    json_object_foreach(all, place, list) {
        if (!json_is_array(list)) continue;
        snprintf(path, sizeof path, "%s/tests/golden/%s", source, place);
        assert_true((check_folder(path, list) > 0) == (json_array_size(list) > 0));
        folders++;
    }
    assert_true(folders > 40);
    json_decref(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(families)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
