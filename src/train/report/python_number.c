#include "train/report/python_number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The digits of the mantissa, without point, and the power of ten of the first. */
static int find_digits(double value, char digits[20]) {
    char text[32];
    int precision = 0, count = 0;
    do snprintf(text, sizeof text, "%.*e", precision, value);
    while (strtod(text, NULL) != value && ++precision < 17);
    char *power = strchr(text, 'e');
    for (const char *at = text; at < power; at++) /* the point is the locale's */
        if (*at >= '0' && *at <= '9') digits[count++] = *at;
    digits[count] = '\0';
    return (int)strtol(power + 1, NULL, 10);
}

static char *put_zeros(char *out, int count) {
    for (int i = 0; i < count; i++) *out++ = '0';
    return out;
}

/* Digits, with the point behind the first and the power of ten. */
static char *put_scientific(const char *digits, int power, char *out) {
    int size = abs(power);
    *out++ = *digits++;
    if (*digits) *out++ = '.';
    while (*digits) *out++ = *digits++;
    *out++ = 'e';
    *out++ = power < 0 ? '-' : '+';
    if (size >= 100) *out++ = (char)('0' + size / 100);
    *out++ = (char)('0' + size / 10 % 10);
    *out++ = (char)('0' + size % 10);
    return out;
}

static char *put_plain(const char *digits, int power, char *out) {
    int count = (int)strlen(digits), whole = power < 0 ? 1 : power + 1;
    if (power < 0) out = put_zeros(out, 1);
    for (int i = 0; power >= 0 && i < whole && *digits; i++) *out++ = *digits++;
    if (power >= 0) out = put_zeros(out, whole - count);
    *out++ = '.';
    out = put_zeros(out, -power - 1);
    if (!*digits) *out++ = '0';
    while (*digits) *out++ = *digits++;
    return out;
}

const char *train_python_number(double value, char out[32]) {
    char digits[20], *at = out;
    if (!isfinite(value)) {
        snprintf(out, 32, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return out;
    }
    int power = find_digits(fabs(value), digits);
    if (signbit(value)) *at++ = '-';
    at = power < -4 || power >= 16 ? put_scientific(digits, power, at)
                                   : put_plain(digits, power, at);
    *at = '\0';
    return out;
}
