/* The HJSON reader on any bytes: no crash, one line of message; it reads every JSON object as the
 * JSON reader does, and what it makes of HJSON it reads again from JSON's text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "config/config_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

static void read_again(const json_t *value) {
    json_t *again = NULL;
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    must(text != NULL);
    must(config_hjson(text, strlen(text), "again", &again, NULL) == SIFR_OK);
    must(json_equal(again, (json_t *)(uintptr_t)value));
    json_decref(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = size ? (const char *)data : "";
    json_t *value = NULL, *json = NULL;
    sifr_error error = {0};
    (void)config_hjson_likely(text, size);
    sifr_status status = config_hjson(text, size, "fuzz", &value, &error);
    if (status == SIFR_OK)
        read_again(value);
    else
        must(error.message[0] && !strpbrk(error.message, "\n\r"));
    if (base_json_parse_strict(text, size, "fuzz", &json, NULL) == SIFR_OK && json_is_object(json))
        must(status == SIFR_OK && json_equal(value, json));
    json_decref(json);
    json_decref(value);
    return 0;
}
