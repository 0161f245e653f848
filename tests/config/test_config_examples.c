/* The configs of examples/ run as they are, and say so. */
#include "config/config_case.h"

#include <dirent.h>

static void examples_resolve(void **state) {
    (void)state;
    char folder[4096], path[8192];
    assert_non_null(getenv("SOURCE"));
    snprintf(folder, sizeof folder, "%s/examples", getenv("SOURCE"));
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (strncmp(entry->d_name, "ds_config", 9) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        sifr_config config;
        sifr_error error = {0};
        assert_int_equal(config_create(&config, &error), SIFR_OK);
        sifr_status status = config_load(&config, path, &error);
        if (status == SIFR_OK) status = config_resolve(&config, 1, &error);
        if (status != SIFR_OK) fail_msg("%s: %s", entry->d_name, error.message);
        config_case_is_taken(&config);
        config_free(&config);
        count++;
    }
    closedir(directory);
    assert_true(count >= 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples_resolve)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
