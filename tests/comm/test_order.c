/* Ranks are numbered host by host and switch by switch, and as the launcher has them where it did
 * that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "comm/order.h"

enum { RANKS = 8 };

static void check(const char *hosts, const char *switches, const char *wanted) {
    comm_spot all[RANKS];
    char numbers[RANKS + 1] = "";
    int32_t size = (int32_t)strlen(hosts);
    for (int32_t r = 0; r < size; r++) {
        all[r] = (comm_spot){.leaf = *switches ? (uint64_t)switches[r] : 0};
        while (hosts[all[r].first] != hosts[r]) all[r].first++;
    }
    for (int32_t r = 0; r < size; r++) numbers[r] = (char)('0' + comm_order_number(all, size, r));
    assert_string_equal(numbers, wanted);
}

static void test_order(void **state) {
    (void)state;
    check("a", "", "0");
    check("aabb", "", "0123"); /* block */
    check("aaabb", "", "01234");
    check("abab", "", "0213"); /* cyclic */
    check("abcabc", "", "024135");
    check("abcabca", "", "0351462");
    check("baab", "", "0231");
    check("aabbccdd", "xxxxyyyy", "01234567");
    check("aabbccdd", "xxyyxxyy", "01452367"); /* hosts in another order than switches */
    check("abcdabcd", "xyxyxyxy", "04261537");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
