/* The name of a real vocabulary's splitting by the hash of its ids; the vocabulary lies beside the
 * project. Skipped where ../shared is not there. */
#include "support/scratch.h"

#include "formats/gguf/gguf_vocab.h"

static void gpt2_by_hash(void **state) {
    (void)state;
    char path[1024];
    sifr_error error;
    const char *name = NULL;
    snprintf(path, sizeof path, "%s/../shared/data/tok/gpt2",
             getenv("SOURCE") ? getenv("SOURCE") : ".");
    if (!base_is_directory(path)) {
        print_message("%s is not there: skipped\n", path);
        skip();
    }
    /* Without the JSON, so that the pattern cannot name it. */
    formats_gguf_files files = {.folder = path};
    if (formats_gguf_pre(&files, NULL, &name, &error)) fail_msg("%s", error.message);
    assert_string_equal(name, "gpt-2");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gpt2_by_hash)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
