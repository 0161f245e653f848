/* XXH3's own values; a hash by pieces is that of the whole, and each piece is announced once,
 * before it is read. */
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

/* As other programs compute them: checkpoints are read by more than one version of this one. */
static void test_known(void **state) {
    (void)state;
    assert_int_equal(base_hash("", 0), 0x2d06800538d394c2);
    assert_int_equal(base_hash("abc", 3), 0x78af5f94892f3950);
    assert_int_equal(base_hash_seeded("abc", 3, 0), base_hash("abc", 3));
    assert_true(base_hash_seeded("abc", 3, 1) != base_hash("abc", 3));
    assert_true(base_hash_seeded("abc", 3, 1) != base_hash_seeded("abd", 3, 1));
    assert_true(base_hash_seeded("", 0, 1) != base_hash_seeded("", 0, 2));
}

static void test_hex(void **state) {
    (void)state;
    char out[17];
    base_hash_hex(0, out);
    assert_string_equal(out, "0000000000000000");
    base_hash_hex(0x0123456789abcdef, out);
    assert_string_equal(out, "0123456789abcdef");
    base_hash_hex(UINT64_MAX, out);
    assert_string_equal(out, "ffffffffffffffff");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces), cmocka_unit_test(test_known),
                                       cmocka_unit_test(test_hex)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
