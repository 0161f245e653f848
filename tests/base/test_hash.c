/* A hash by pieces is that of the whole, and each piece is announced once, before it is read. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *expected; /* where the next piece begins */

static void ahead(const void *piece, size_t size) {
    assert_ptr_equal(piece, expected);
    assert_true(size > 0);
    expected += size;
}

static void test_pieces(void **state) {
    (void)state;
    const size_t sizes[] = {0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (7 << 19) + 3};
    size_t most = 4 << 20;
    char *data = malloc(most);
    assert_non_null(data);
    for (size_t i = 0; i < most; i++) data[i] = (char)(i * i >> 7);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        expected = data;
        assert_int_equal(base_hash_pieces(data, sizes[i], ahead), base_hash(data, sizes[i]));
        assert_ptr_equal(expected, data + sizes[i]);
    }
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
