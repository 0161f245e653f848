/* Days of chat templates, against the C library's calendar. Takes no time. */
#include "data/chat/chat_day.h"

#include "support/scratch.h"

static void has_the_calendar(void **state) {
    (void)state;
    for (time_t at = -2208988800; at < 4102444800; at += 86400) { /* 1900 to 2099 */
        struct tm wanted, found;
        char word[32];
        sifr_error error = {0};
        assert_non_null(gmtime_r(&at, &wanted));
        strftime(word, sizeof word, "%Y-%m-%d", &wanted);
        if (data_chat_day_read(word, &found, &error) != SIFR_OK) fail_msg("%s", error.message);
        bool same = found.tm_year == wanted.tm_year && found.tm_mon == wanted.tm_mon &&
                    found.tm_mday == wanted.tm_mday && found.tm_wday == wanted.tm_wday &&
                    found.tm_yday == wanted.tm_yday;
        if (!same)
            fail_msg("%s: day %d of the week, %d of the year", word, found.tm_wday, found.tm_yday);
    }
    assert_int_equal(data_chat_day_usual().tm_wday, 5);
}

static void refuses_others(void **state) {
    (void)state;
    static const char *const words[] = {"",           "today",       "2025-8-5",   "2025-02-29",
                                        "2025-13-01", "2025-00-01",  "2025-01-00", "2025-04-31",
                                        "1899-12-31", "2025-01-011", "2025/01/01", "2025-01-0x"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct tm out;
        sifr_error error = {0};
        assert_int_equal(data_chat_day_read(words[i], &out, &error), SIFR_USAGE);
        assert_message(&error, words[i]);
        assert_message(&error, "is no day; give one as 2025-08-05");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_calendar),
        cmocka_unit_test(refuses_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
