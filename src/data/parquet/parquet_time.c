/* Dates and times as text, as ISO 8601 and Python's isoformat() write them. */
#include <inttypes.h>
#include <stdio.h>

#include "data/parquet/parquet_internal.h"

#define SECONDS_OF_DAY ((int64_t)86400)

/* Parts of a second in a unit. */
static int64_t parts_of(carquet_time_unit_t unit) {
    return unit == CARQUET_TIME_UNIT_MILLIS   ? 1000
           : unit == CARQUET_TIME_UNIT_MICROS ? 1000000
                                              : 1000000000;
}

/* Floor of a / b, for b above 0; *rest is what is left, 0 … b - 1. */
static int64_t divide(int64_t a, int64_t b, int64_t *rest) {
    *rest = a % b;
    if (*rest < 0) *rest += b;
    return a / b - (a % b < 0);
}

/* "2024-02-29" of days since 1970, in the Gregorian calendar; false outside of years 1 to 9999. */
static bool write_date(int64_t days, char out[PARQUET_TIME_SIZE], size_t *used) {
    const int64_t era_days = 146097; /* of 400 years */
    int64_t day;
    if (days < -719162 || days > 2932896) return false;
    int64_t era = divide(days + 719468, era_days, &day); /* years begin in March */
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int64_t of_year = day - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153; /* from March */
    int64_t of_month = of_year - (153 * month + 2) / 5 + 1;
    month = month < 10 ? month + 3 : month - 9;
    year += era * 400 + (month <= 2);
    *used = (size_t)snprintf(out, PARQUET_TIME_SIZE, "%04" PRId64 "-%02" PRId64 "-%02" PRId64, year,
                             month, of_month);
    return true;
}

/* "12:30:00", with micro- or nanoseconds where there are some. */
static void write_clock(int64_t seconds, int64_t part, int64_t parts, char *out, size_t size) {
    int64_t nanos = part * (1000000000 / parts);
    int used = snprintf(out, size, "%02" PRId64 ":%02" PRId64 ":%02" PRId64, seconds / 3600,
                        seconds / 60 % 60, seconds % 60);
    if (nanos % 1000)
        snprintf(out + used, size - (size_t)used, ".%09" PRId64, nanos);
    else if (nanos)
        snprintf(out + used, size - (size_t)used, ".%06" PRId64, nanos / 1000);
}

bool data_parquet_time_text(const parquet_cursor *cursor, int64_t value,
                            char out[PARQUET_TIME_SIZE]) {
    int64_t parts = parts_of(cursor->unit), part, seconds, of_day, days;
    size_t used = 0;
    if (cursor->form == PARQUET_DATE) return write_date(value, out, &used);
    seconds = divide(value, parts, &part);
    days = divide(seconds, SECONDS_OF_DAY, &of_day);
    if (cursor->form == PARQUET_TIME && days != 0) return false;
    if (cursor->form == PARQUET_TIMESTAMP) {
        if (!write_date(days, out, &used)) return false;
        out[used++] = 'T';
    }
    write_clock(of_day, part, parts, out + used, PARQUET_TIME_SIZE - used);
    if (!cursor->zone || cursor->form == PARQUET_TIME) return true;
    for (used = 0; out[used];) used++;
    snprintf(out + used, PARQUET_TIME_SIZE - used, "+00:00");
    return true;
}
