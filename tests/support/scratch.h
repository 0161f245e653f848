/* A directory of a test's own, and files in it. Included by one test file each. */
#ifndef SUPPORT_SCRATCH_H
#define SUPPORT_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static char scratch[64]; /* the directory; made by scratch_setup, removed by scratch_teardown */

static inline int scratch_setup(void **state) {
    (void)state;
    strcpy(scratch, "/tmp/sifr-test.XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static inline int scratch_teardown(void **state) {
    (void)state;
    return base_remove_tree(scratch, NULL) == SIFR_OK ? 0 : -1;
}

/* The path of `name` in the directory; lives until 63 more were asked for. */
static inline const char *scratch_path(const char *name) {
    static char paths[64][512];
    static int next;
    char *path = paths[next++ % 64];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

/* The same, and nothing is there. */
static inline const char *scratch_fresh(const char *name) {
    const char *path = scratch_path(name);
    assert_int_equal(base_remove_tree(path, NULL), SIFR_OK);
    return path;
}

static inline const char *scratch_write(const char *name, const void *data, size_t size) {
    const char *path = scratch_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

static inline const char *scratch_text(const char *name, const char *text) {
    return scratch_write(name, text, strlen(text));
}

static inline void scratch_expect_empty(void) {
    char **names;
    size_t count;
    assert_int_equal(base_list_directory(scratch, &names, &count, NULL), SIFR_OK);
    base_free_names(names, count);
    assert_int_equal(count, 0);
}

/* One line, with `part` in it. */
static inline void assert_message(const sifr_error *error, const char *part) {
    assert_null(strchr(error->message, '\n'));
    if (!strstr(error->message, part)) {
        fail_msg("message without '%s': %s", part, error->message);
    }
}

#endif
