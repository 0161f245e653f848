#include "text/tokenizer/tokenizer_normal.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_internal.h"

enum { NEAR = 256 }; /* code points of a stretch that need no heap */

/* End of the run of characters that NFC does not change, and *last, the start of the last of them
 * (or `p`): that one may be composed with what comes. */
static const uint8_t *stable_run(const text_unicode *unicode, const uint8_t *p, const uint8_t *end,
                                 const uint8_t **last) {
    *last = p;
    while (p < end) {
        size_t length;
        if (*p < 0x80) {
            *last = p++;
            continue;
        }
        if (text_unicode_flags(unicode, text_utf8_get(p, &length)) & TEXT_UNSTABLE) break;
        *last = p;
        p += length;
    }
    return p;
}

size_t text_normal_prefix(const text_unicode *unicode, const uint8_t *text, size_t size) {
    const uint8_t *last, *end = text + size;
    return stable_run(unicode, text, end, &last) == end ? size : (size_t)(last - text);
}

static int combining_class(utf8proc_int32_t c) {
    return utf8proc_get_property(c)->combining_class;
}

/* Stable counting sort of a run of marks by class; utf8proc's own is quadratic. */
static void sort_marks(utf8proc_int32_t *run, size_t count, utf8proc_int32_t *spare) {
    size_t starts[256] = {0}, total = 0;
    for (size_t i = 0; i < count; i++) starts[combining_class(run[i])]++;
    for (size_t class = 0; class < 256; class ++) {
        size_t here = starts[class];
        starts[class] = total;
        total += here;
    }
    for (size_t i = 0; i < count; i++) spare[starts[combining_class(run[i])]++] = run[i];
    memcpy(run, spare, count * sizeof *run);
}

/* Decomposes into *points, which grows; it begins as the caller's `near`. */
static sifr_status decompose(const uint8_t *p, const uint8_t *end, utf8proc_option_t options,
                             utf8proc_int32_t **points, size_t *capacity, size_t *count,
                             sifr_error *error) {
    size_t length;
    for (*count = 0; p < end; p += length) {
        int boundary = 0;
        utf8proc_int32_t c = (utf8proc_int32_t)text_utf8_get(p, &length), parts[64];
        utf8proc_ssize_t made = 1;
        parts[0] = c;
        if (text_unicode_decomposes((uint32_t)c))
            made = utf8proc_decompose_char(c, parts, 64, options, &boundary);
        if (made < 1 || made > 64)
            return base_fail(error, SIFR_FAILED, "normalizing U+%04X failed", (unsigned)c);
        if (*count + (size_t)made > *capacity) {
            utf8proc_int32_t *wider = malloc(*capacity * 2 * sizeof *wider);
            if (!wider) return base_fail_alloc(error, *capacity * 2 * sizeof *wider);
            memcpy(wider, *points, *count * sizeof *wider);
            if (*capacity > NEAR) free(*points);
            *points = wider;
            *capacity *= 2;
        }
        memcpy(*points + *count, parts, (size_t)made * sizeof *parts);
        *count += (size_t)made;
    }
    return SIFR_OK;
}

/* Runs of marks into the order of their classes. */
static sifr_status order_marks(utf8proc_int32_t *points, size_t count, sifr_error *error) {
    utf8proc_int32_t *spare = NULL;
    for (size_t i = 0; i < count;) {
        size_t first = i;
        bool sorted = true;
        for (; i < count && combining_class(points[i]) != 0; i++) {
            if (i > first && combining_class(points[i - 1]) > combining_class(points[i]))
                sorted = false;
        }
        if (!sorted && !spare) BASE_TRY(base_alloc(count, sizeof *spare, &spare, error));
        if (!sorted) sort_marks(points + first, i - first, spare);
        if (i == first) i++;
    }
    free(spare);
    return SIFR_OK;
}

/* Appends the form of a stretch from one stable character to before the next. */
static sifr_status normalize_stretch(text_normal_form form, const uint8_t *p, const uint8_t *end,
                                     text_tokenizer_text *out, sifr_error *error) {
    utf8proc_int32_t near[NEAR], *points = near;
    size_t capacity = NEAR, count = 0;
    bool compatible = form == TEXT_NFKC || form == TEXT_NFKD;
    bool composes = form == TEXT_NFC || form == TEXT_NFKC;
    utf8proc_option_t options =
        compatible ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE;
    sifr_status status = SIFR_OK;
    BASE_TRY_GOTO(status, decompose(p, end, options, &points, &capacity, &count, error), done);
    BASE_TRY_GOTO(status, order_marks(points, count, error), done);
    if (composes) {
        utf8proc_ssize_t composed = utf8proc_normalize_utf32(points, (utf8proc_ssize_t)count,
                                                             UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        if (composed < 0) {
            status =
                base_fail(error, SIFR_FAILED, "normalizing failed: %s", utf8proc_errmsg(composed));
            goto done;
        }
        count = (size_t)composed;
    }
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[4];
        size_t length = text_utf8_put((uint32_t)points[i], bytes);
        BASE_TRY_GOTO(status, text_tokenizer_text_append(out, bytes, length, error), done);
    }
done:
    if (capacity > NEAR) free(points);
    return status;
}

/* No form changes c, nor composes it with a neighbour. */
static bool never_changes(const text_unicode *unicode, uint32_t c) {
    return c < 0xA0 || (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3001 && c <= 0x3029) ||
           (text_unicode_flags(unicode, c) & TEXT_BARRIER);
}

sifr_status text_normal_form_of(const text_unicode *unicode, text_normal_form form,
                                const uint8_t *text, size_t size, text_tokenizer_text *out,
                                sifr_error *error) {
    const uint8_t *p = text, *end = text + size;
    if (form == TEXT_NFC) return text_normalize(unicode, text, size, out, error);
    while (p < end) {
        const uint8_t *from = p, *last = p;
        size_t length;
        uint32_t c = 0;
        while (p < end && never_changes(unicode, c = text_utf8_get(p, &length)))
            last = p, p += length;
        if (p == end) return text_tokenizer_text_append(out, from, (size_t)(end - from), error);
        /* An ASCII letter before a mark may be composed with it; a barrier never. */
        if (last < p && (text_unicode_flags(unicode, text_utf8_get(last, &length)) & TEXT_BARRIER))
            last = p;
        BASE_TRY(text_tokenizer_text_append(out, from, (size_t)(last - from), error));
        for (from = last; p < end && !never_changes(unicode, text_utf8_get(p, &length));
             p += length) {
        }
        BASE_TRY(normalize_stretch(form, from, p, out, error));
    }
    return SIFR_OK;
}

sifr_status text_normalize(const text_unicode *unicode, const uint8_t *text, size_t size,
                           text_tokenizer_text *out, sifr_error *error) {
    const uint8_t *p = text, *end = text + size;
    while (p < end) {
        const uint8_t *last, *stop = stable_run(unicode, p, end, &last);
        if (stop == end) return text_tokenizer_text_append(out, p, (size_t)(end - p), error);
        /* From the character before, which may be composed, unless it is known not to. */
        size_t length;
        if (last < stop &&
            (text_unicode_flags(unicode, text_utf8_get(last, &length)) & TEXT_BARRIER))
            last = stop;
        BASE_TRY(text_tokenizer_text_append(out, p, (size_t)(last - p), error));
        for (p = stop; p < end; p += length) {
            if (!(text_unicode_flags(unicode, text_utf8_get(p, &length)) & TEXT_UNSTABLE)) break;
        }
        BASE_TRY(normalize_stretch(TEXT_NFC, last, p, out, error));
    }
    return SIFR_OK;
}
