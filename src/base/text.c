#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct base_suffix {
    const char *name;
    double factor;
} base_suffix;

/* The leading number, times the factor of its suffix, in whole ones: 21.4 GiB are no whole bytes,
 * and `rounds` them down; a count is exact. */
static sifr_status base_parse_scaled(const char *text, const base_suffix *suffixes, size_t count,
                                     bool rounds, const char *what, const char *example,
                                     int64_t *out, sifr_error *error) {
    char *end;
    bool plain = isdigit((unsigned char)text[0]) || text[0] == '.';
    double number = plain ? strtod(text, &end) : NAN;
    if (plain && (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))) plain = false;
    double factor = plain && *end == 0 ? 1 : NAN;
    for (size_t i = 0; plain && i < count; i++) {
        if (strcasecmp(end, suffixes[i].name) == 0) factor = suffixes[i].factor;
    }
    double value = number * factor;
    if (rounds && factor > 1) value = floor(value);
    if (!(value >= 0) || value > 0x1p62 || value != floor(value)) {
        return base_fail(error, SIFR_USAGE, "%s: '%.60s' is not a number like %s", what, text,
                         example);
    }
    *out = (int64_t)value;
    return SIFR_OK;
}

sifr_status base_parse_count(const char *text, const char *what, int64_t *out, sifr_error *error) {
    static const base_suffix suffixes[] = {
        {"k", 1e3}, {"m", 1e6}, {"b", 1e9}, {"g", 1e9}, {"t", 1e12}};
    errno = 0;
    char *end;
    if (isdigit((unsigned char)text[0])) { /* exact beyond 2^53 */
        long long whole = strtoll(text, &end, 10);
        if (*end == 0 && errno == 0) {
            *out = whole;
            return SIFR_OK;
        }
    }
    return base_parse_scaled(text, suffixes, sizeof suffixes / sizeof *suffixes, false, what,
                             "4096, 4k or 1e9", out, error);
}

sifr_status base_parse_bytes(const char *text, const char *what, int64_t *out, sifr_error *error) {
    static const base_suffix suffixes[] = {
        {"B", 1},        {"K", 0x1p10},   {"M", 0x1p20},   {"G", 0x1p30},   {"T", 0x1p40},
        {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"KB", 1e3},
        {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12}};
    return base_parse_scaled(text, suffixes, sizeof suffixes / sizeof *suffixes, true, what,
                             "24GiB, 1.5GB or 4096", out, error);
}

sifr_status base_parse_double(const char *text, const char *what, double *out, sifr_error *error) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || !isfinite(number)) {
        return base_fail(error, SIFR_USAGE, "%s: '%.60s' is not a number like 0.5 or 3e-4", what,
                         text);
    }
    *out = number;
    return SIFR_OK;
}

char *base_format_bytes(uint64_t bytes, char out[32]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1000 && unit < 5) value /= 1024, unit++;
    snprintf(out, 32,
             unit == 0 || value >= 100 ? "%.0f %s"
             : value >= 10             ? "%.1f %s"
                                       : "%.2f %s",
             value, units[unit]);
    return out;
}

char *base_format_count(int64_t count, char out[32]) {
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)count);
    int used = 0;
    for (int i = 0; i < length; i++) {
        out[used++] = digits[i];
        int left = length - 1 - i;
        if (left && left % 3 == 0 && isdigit((unsigned char)digits[i])) out[used++] = ',';
    }
    out[used] = 0;
    return out;
}

char *base_format_counted(int64_t count, const char *word, char out[80]) {
    char number[32];
    snprintf(out, 80, "%s %s%s", base_format_count(count, number), word, count == 1 ? "" : "s");
    return out;
}

char *base_format_divisors(int64_t n, char *out, size_t size) {
    size_t used = 0;
    out[0] = '\0';
    for (int64_t d = 2; d <= n; d++) {
        if (d > n / 2) d = n;
        if (n % d) continue;
        const char *before = !used ? "" : d == n ? " or " : ", ";
        if (d < n && used + 48 > size) { /* of any number, and of the last one */
            used += (size_t)snprintf(out + used, size - used, " ...");
            d = n - 1;
            continue;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%lld", before, (long long)d);
    }
    return out;
}

static size_t base_edit_distance(const char *a, const char *b) {
    enum { LONGEST = 63 };
    size_t n = strlen(a), m = strlen(b), row[LONGEST + 1];
    if (n > LONGEST || m > LONGEST) return n > m ? n : m;
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t change =
                diagonal + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
            diagonal = row[j];
            size_t other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < other ? change : other;
        }
    }
    return row[m];
}

const char *base_nearest(const char *name, const char *const *candidates, size_t count) {
    const char *best = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t a = strlen(name), b = strlen(candidates[i]);
        size_t distance = base_edit_distance(name, candidates[i]);
        size_t longest = a > b ? a : b;
        bool near = distance < longest && distance <= (longest + 2) / 3;
        if (distance < least && near) {
            least = distance;
            best = candidates[i];
        }
    }
    return best;
}

bool base_find_word(const char *const *words, size_t count, const char *word, int *out) {
    *out = 0;
    for (size_t i = 0; word && i < count; i++)
        if (strcasecmp(words[i], word) == 0) return *out = (int)i, true;
    return !word;
}
