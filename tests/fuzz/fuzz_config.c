/* The config parser on any bytes: no crash, one line of message, and what it accepts repeats. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore_line(void *user, const char *line) {
    (void)user;
    if (strlen(line) >= 1024) abort();
}

static void must(int truth) {
    if (!truth) abort();
}

/* The effective config of an accepted one must be accepted, and come out the same. */
static void repeat(const sifr_config *config) {
    json_t *effective = config_effective(config);
    char *text = json_dumps(effective, 0);
    must(text != NULL);
    sifr_config second;
    must(config_create(&second, NULL) == SIFR_OK);
    must(config_parse(&second, text, strlen(text), "effective", NULL) == SIFR_OK);
    must(config_resolve(&second, config->world_size, NULL) == SIFR_OK);
    json_t *again = config_effective(&second);
    must(json_equal(effective, again));
    json_decref(again);
    json_decref(effective);
    free(text);
    config_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sifr_config config;
    sifr_error error = {0};
    if (config_create(&config, &error) != SIFR_OK) return 0;
    int64_t ranks = size && data[size - 1] % 2 ? 2 : 1;
    sifr_status status = config_parse(&config, (const char *)data, size, "fuzz.json", &error);
    if (status == SIFR_OK) status = config_resolve(&config, ranks, &error);
    config_explain(&config, true, ignore_line, NULL);
    if (status == SIFR_OK) {
        repeat(&config);
    } else {
        must(error.message[0] && !strpbrk(error.message, "\n\r"));
    }
    config_free(&config);
    return 0;
}
