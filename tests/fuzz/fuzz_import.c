/* Other programs' configs as any bytes: no crash, one line of message, and what is made is JSON
 * that the config's own parser takes or refuses in one line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/import/config_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

static void one_line(void *user, const char *line) {
    (void)user;
    must(strlen(line) < 1024 && !strpbrk(line, "\n\r"));
}

/* Through the text that `sifr import` writes. */
static void parse(const json_t *made) {
    sifr_config config;
    sifr_error error = {0};
    char *text = NULL;
    must(config_json_text(made, &text, &error) == SIFR_OK);
    must(config_create(&config, &error) == SIFR_OK);
    sifr_status status = config_parse(&config, text, strlen(text), "made", &error);
    if (status == SIFR_OK) status = config_resolve(&config, 1, &error);
    must(status == SIFR_OK || (error.message[0] && !strpbrk(error.message, "\n\r")));
    config_free(&config);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sifr_error error = {0};
    config_imported made;
    sifr_status status =
        config_import((const char *)data, size, "fuzz.yaml", NULL, one_line, NULL, &made, &error);
    if (status != SIFR_OK) {
        must(error.message[0] && !strpbrk(error.message, "\n\r"));
        return 0;
    }
    parse(made.config);
    json_decref(made.config);
    return 0;
}
