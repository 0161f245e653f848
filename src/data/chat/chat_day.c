#include "data/chat/chat_day.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Days before a month in a year that is no leap year. */
static const int before[12] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};

static bool is_leap(int year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_of(int year, int month) {
    int next = month < 12 ? before[month] : 365;
    return next - before[month - 1] + (month == 2 && is_leap(year));
}

/* As C's struct tm has it. 1 January 1900 was a Monday. */
static struct tm day_of(int year, int month, int day) {
    int gone = year - 1900, leaps = 0;
    for (int y = 1900; y < year; y++) leaps += is_leap(y);
    int of_year = before[month - 1] + (month > 2 && is_leap(year)) + day - 1;
    return (struct tm){.tm_year = gone,
                       .tm_mon = month - 1,
                       .tm_mday = day,
                       .tm_yday = of_year,
                       .tm_wday = (1 + gone * 365 + leaps + of_year) % 7};
}

struct tm data_chat_day_usual(void) {
    return day_of(2024, 7, 26);
}

static int number(const char *digits, int count) {
    int value = 0;
    for (int i = 0; i < count; i++) value = 10 * value + digits[i] - '0';
    return value;
}

sifr_status data_chat_day_read(const char *word, struct tm *out, sifr_error *error) {
    static const char form[] = "0000-00-00";
    bool good = strlen(word) == sizeof form - 1;
    for (size_t i = 0; good && form[i]; i++)
        good = form[i] == '0' ? isdigit((unsigned char)word[i]) : word[i] == '-';
    int year = good ? number(word, 4) : 0, month = good ? number(word + 5, 2) : 0;
    int day = good ? number(word + 8, 2) : 0;
    good = year >= 1900 && month >= 1 && month <= 12 && day >= 1 && day <= days_of(year, month);
    if (!good)
        return base_fail(error, SIFR_USAGE,
                         "chat_template_date: '%.40s' is no day; give one as 2025-08-05", word);
    *out = day_of(year, month, day);
    return SIFR_OK;
}
