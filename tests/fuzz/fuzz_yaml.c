/* The YAML reader on any bytes: no crash, one line of message, and values that are bounded in
 * number and depth, and are JSON. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

static size_t count_values(const json_t *value, int depth) {
    const char *key;
    json_t *item;
    size_t i, count = 1;
    must(depth <= BASE_JSON_DEPTH);
    if (json_is_object(value))
        json_object_foreach((json_t *)(uintptr_t)value, key, item) count +=
            count_values(item, depth + 1);
    else if (json_is_array(value))
        json_array_foreach(value, i, item) count += count_values(item, depth + 1);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_t *value = NULL;
    sifr_error error = {0};
    sifr_status status =
        base_yaml_parse(size ? (const char *)data : "", size, "fuzz.yaml", &value, &error);
    if (status != SIFR_OK) {
        must(error.message[0] && !strpbrk(error.message, "\n\r"));
        return 0;
    }
    must(count_values(value, 0) <= BASE_YAML_VALUES);
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    must(text != NULL);
    free(text);
    json_decref(value);
    return 0;
}
