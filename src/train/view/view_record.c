#include "train/view/view_record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct record_reader {
    const char *at, *end;
} record_reader;

static void skip_blanks(record_reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r')) r->at++;
}

static bool take_char(record_reader *r, char c) {
    skip_blanks(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

/* A key with an escape is none of sifr's, and is passed over under no name. */
static bool take_text(record_reader *r, const char **text, size_t *length) {
    bool plain = true;
    if (!take_char(r, '"')) return false;
    *text = r->at;
    for (; r->at < r->end && *r->at != '"'; r->at++) {
        if ((unsigned char)*r->at < ' ') return false;
        if (*r->at != '\\') continue;
        plain = false;
        if (++r->at == r->end) return false;
    }
    if (r->at == r->end) return false;
    *length = plain ? (size_t)(r->at - *text) : 0;
    r->at++;
    return true;
}

static bool take_word(record_reader *r, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) return false;
    r->at += length;
    return true;
}

/* What the quick way cannot do exactly. */
static bool slow_number(const char *text, size_t length, double *out) {
    char copy[64], *end;
    if (length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *out = strtod(copy, &end);
    return end == copy + length;
}

static int take_digits(record_reader *r, uint64_t *mantissa) {
    int digits = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++, digits++) {
        if (*mantissa < (uint64_t)1 << 59)
            *mantissa = 10 * *mantissa + (uint64_t)(*r->at - '0');
        else
            *mantissa = UINT64_MAX; /* stays, and is no exact double */
    }
    return digits;
}

static bool take_exponent(record_reader *r, int *exponent) {
    uint64_t size = 0;
    if (r->at == r->end || (*r->at != 'e' && *r->at != 'E')) return true;
    r->at++;
    bool minus = r->at < r->end && *r->at == '-';
    if (r->at < r->end && (*r->at == '-' || *r->at == '+')) r->at++;
    if (!take_digits(r, &size)) return false;
    int most = size > 10000 ? 10000 : (int)size;
    *exponent += minus ? -most : most;
    return true;
}

/* A whole number below 2^53 times or by a power of ten up to 10^22 is one rounding, and so exact;
 * those that sifr writes with nine digits mostly are. */
static bool take_number(record_reader *r, double *out) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *begin = r->at;
    uint64_t mantissa = 0;
    int exponent = 0;
    bool minus = r->at < r->end && *r->at == '-';
    r->at += minus;
    if (!take_digits(r, &mantissa)) return false;
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        int digits = take_digits(r, &mantissa);
        if (!digits) return false;
        exponent = -digits;
    }
    if (!take_exponent(r, &exponent)) return false;
    if (mantissa >= (uint64_t)1 << 53 || exponent < -22 || exponent > 22)
        return slow_number(begin, (size_t)(r->at - begin), out);
    double value = (double)mantissa;
    value = exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
    *out = minus ? -value : value;
    return true;
}

/* *number: whether it is one, or null. */
static bool take_value(record_reader *r, bool *number, double *value) {
    const char *text;
    size_t length;
    skip_blanks(r);
    *number = false;
    if (r->at == r->end) return false;
    if (*r->at == '"') return take_text(r, &text, &length);
    if (take_word(r, "true") || take_word(r, "false")) return true;
    *number = true;
    *value = NAN;
    return take_word(r, "null") || take_number(r, value);
}

static void add_field(train_view_record *out, const char *key, size_t length, double value) {
    if (length == 0) return;
    if (out->count == TRAIN_VIEW_FIELDS) {
        out->left_out++;
        return;
    }
    out->fields[out->count++] = (train_view_field){key, length, value};
}

static bool take_member(record_reader *r, train_view_record *out) {
    const char *key;
    size_t length;
    bool number;
    double value;
    if (!take_text(r, &key, &length) || !take_char(r, ':') || !take_value(r, &number, &value))
        return false;
    if (length == 4 && memcmp(key, "step", 4) == 0) {
        if (!number || !(value >= 0 && value < 9e15) || value != floor(value)) return false;
        out->step = (int64_t)value;
    } else if (number) {
        add_field(out, key, length, value);
    }
    return true;
}

bool train_view_record_read(const char *line, size_t size, train_view_record *out) {
    record_reader r = {line, line + size};
    out->step = -1;
    out->count = out->left_out = 0;
    if (!take_char(&r, '{')) return false;
    do {
        if (!take_member(&r, out)) return false;
    } while (take_char(&r, ','));
    if (!take_char(&r, '}')) return false;
    skip_blanks(&r);
    return r.at == r.end && out->step >= 0;
}
