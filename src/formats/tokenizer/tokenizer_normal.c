#include "formats/tokenizer/tokenizer_normal.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "base/heap.h"
#include "formats/tokenizer/tokenizer_internal.h"

/* End of the run of characters that NFC does not change, and *last, the start of the last of them
 * (or `p`): that one may be composed with what comes. */
static const uint8_t *stable_run(const formats_unicode *unicode, const uint8_t *p,
                                 const uint8_t *end, const uint8_t **last) {
    *last = p;
    while (p < end) {
        size_t length;
        if (*p < 0x80) {
            *last = p++;
            continue;
        }
        if (formats_unicode_flags(unicode, formats_utf8_get(p, &length)) & FORMATS_UNSTABLE) break;
        *last = p;
        p += length;
    }
    return p;
}

size_t formats_normal_prefix(const formats_unicode *unicode, const uint8_t *text, size_t size) {
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

/* Appends the NFC of a stretch from one stable character to before the next. */
static sifr_status normalize_stretch(const uint8_t *p, const uint8_t *end,
                                     formats_tokenizer_text *out, sifr_error *error) {
    utf8proc_int32_t near[256], *points = near;
    size_t room = 0, count = 0, characters = 0, length;
    sifr_status status = SIFR_OK;
    for (const uint8_t *q = p; q < end; q += length, characters++) formats_utf8_get(q, &length);
    /* A canonical decomposition has at most 4 code points; half of the room is for sorting. */
    room = characters * 4;
    if (room * 2 > sizeof near / sizeof *near)
        BASE_TRY(base_alloc(room * 2, sizeof *points, &points, error));
    for (const uint8_t *q = p; q < end; q += length) {
        int boundary = 0;
        utf8proc_int32_t c = (utf8proc_int32_t)formats_utf8_get(q, &length);
        utf8proc_ssize_t parts = utf8proc_decompose_char(
            c, points + count, (utf8proc_ssize_t)(room - count), UTF8PROC_DECOMPOSE, &boundary);
        if (parts < 1 || (size_t)parts > room - count) {
            status = base_fail(error, SIFR_FAILED, "NFC of U+%04X failed", (unsigned)c);
            goto done;
        }
        count += (size_t)parts;
    }
    for (size_t i = 0; i < count;) {
        size_t first = i;
        bool sorted = true;
        for (; i < count && combining_class(points[i]) != 0; i++) {
            if (i > first && combining_class(points[i - 1]) > combining_class(points[i]))
                sorted = false;
        }
        if (!sorted) sort_marks(points + first, i - first, points + room);
        if (i == first) i++;
    }
    utf8proc_ssize_t composed = utf8proc_normalize_utf32(points, (utf8proc_ssize_t)count,
                                                         UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    if (composed < 0) {
        status = base_fail(error, SIFR_FAILED, "NFC failed: %s", utf8proc_errmsg(composed));
        goto done;
    }
    for (utf8proc_ssize_t i = 0; i < composed; i++) {
        uint8_t bytes[4];
        length = formats_utf8_put((uint32_t)points[i], bytes);
        BASE_TRY_GOTO(status, formats_tokenizer_text_append(out, bytes, length, error), done);
    }
done:
    if (points != near) free(points);
    return status;
}

sifr_status formats_normalize(const formats_unicode *unicode, const uint8_t *text, size_t size,
                              formats_tokenizer_text *out, sifr_error *error) {
    const uint8_t *p = text, *end = text + size;
    while (p < end) {
        const uint8_t *last, *stop = stable_run(unicode, p, end, &last);
        if (stop == end) return formats_tokenizer_text_append(out, p, (size_t)(end - p), error);
        /* From the character before, which may be composed, unless it is known not to. */
        size_t length;
        if (last < stop &&
            (formats_unicode_flags(unicode, formats_utf8_get(last, &length)) & FORMATS_BARRIER))
            last = stop;
        BASE_TRY(formats_tokenizer_text_append(out, p, (size_t)(last - p), error));
        for (p = stop; p < end; p += length) {
            if (!(formats_unicode_flags(unicode, formats_utf8_get(p, &length)) & FORMATS_UNSTABLE))
                break;
        }
        BASE_TRY(normalize_stretch(last, p, out, error));
    }
    return SIFR_OK;
}
