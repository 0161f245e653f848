/* The pieces that training a Unigram begins with: substrings that occur more than once, by a sorted
 * list of all places of all words. Places are compared by LONGEST + 1 characters at most, which is
 * enough to find the substrings of up to LONGEST. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"
#include "text/tokenizer/tokenizer_train_internal.h"

enum { LONGEST = 16 };

typedef struct text {
    uint32_t *codes;   /* characters of all words, 0 behind each word */
    uint32_t *offsets; /* of each in the table's bytes */
    size_t count;
} text;

typedef struct seeds {
    text_seed *items;
    size_t count, capacity;
} seeds;

static sifr_status lay_out(const text_table *words, text *out, sifr_error *error) {
    size_t capacity;
    if (words->byte_count > UINT32_MAX / 2 ||
        !base_add_size(words->byte_count, words->count + 1, &capacity) || capacity > UINT32_MAX)
        return base_fail(error, SIFR_USAGE,
                         "the words of the text take %zu bytes: more than 2 GiB; train on less",
                         words->byte_count);
    BASE_TRY(base_alloc(capacity, sizeof *out->codes, &out->codes, error));
    BASE_TRY(base_alloc(capacity, sizeof *out->offsets, &out->offsets, error));
    for (size_t w = 0; w < words->count; w++) {
        size_t size, length;
        const uint8_t *bytes = text_table_bytes(words, w, &size);
        for (size_t i = 0; i < size; i += length) {
            out->offsets[out->count] = (uint32_t)(words->items[w].offset + i);
            out->codes[out->count++] = text_utf8_get(bytes + i, &length);
        }
        out->offsets[out->count] = (uint32_t)(words->items[w].offset + size);
        out->codes[out->count++] = 0;
    }
    return SIFR_OK;
}

/* Characters that two places have in common within their words, at most LONGEST + 1. */
static uint32_t common(const text *t, uint32_t a, uint32_t b) {
    uint32_t n = 0;
    while (n <= LONGEST && t->codes[a + n] && t->codes[a + n] == t->codes[b + n]) n++;
    return n;
}

static bool comes_first(const text *t, uint32_t a, uint32_t b) {
    uint32_t n = common(t, a, b);
    if (n > LONGEST || t->codes[a + n] == t->codes[b + n]) return a < b;
    return t->codes[a + n] < t->codes[b + n];
}

/* Merges order[from … middle) and order[middle … to) by way of `buffer`. */
static void merge(const text *t, uint32_t *order, uint32_t *buffer, size_t from, size_t middle,
                  size_t to) {
    size_t a = from, b = middle, at = from;
    if (from == middle || middle == to ||
        !comes_first(t, order[middle], order[middle - 1])) /* in order already */
        return;
    while (a < middle && b < to)
        buffer[at++] = comes_first(t, order[b], order[a]) ? order[b++] : order[a++];
    while (a < middle) buffer[at++] = order[a++];
    while (b < to) buffer[at++] = order[b++];
    memcpy(order + from, buffer + from, (to - from) * sizeof *order);
}

static sifr_status sort_places(const text *t, uint32_t **out, size_t *count, sifr_error *error) {
    uint32_t *order, *buffer;
    size_t n = 0;
    BASE_TRY(base_alloc(t->count, sizeof *order, &order, error));
    *out = order;
    BASE_TRY(base_alloc(t->count, sizeof *buffer, &buffer, error));
    for (size_t i = 0; i < t->count; i++) {
        if (t->codes[i]) order[n++] = (uint32_t)i;
    }
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t from = 0; from + width < n; from += 2 * width) {
            size_t to = from + 2 * width < n ? from + 2 * width : n;
            merge(t, order, buffer, from, from + width, to);
        }
    }
    free(buffer);
    *count = n;
    return SIFR_OK;
}

static sifr_status add(seeds *list, const text *t, const text_table *words, uint32_t place,
                       uint32_t length, double score, sifr_error *error) {
    uint32_t begin = t->offsets[place], end = t->offsets[place + length];
    BASE_TRY(base_grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items, error));
    list->items[list->count++] = (text_seed){words->bytes + begin, end - begin, score};
    return SIFR_OK;
}

/* Every length at which neighbours in the order part is a substring: a stack of those that are
 * open, each with where it began. */
static sifr_status find_repeated(const text *t, const text_table *words, const uint32_t *order,
                                 size_t count, seeds *list, sifr_error *error) {
    struct {
        uint32_t length;
        size_t from;
    } open[LONGEST + 2];
    size_t depth = 0;
    for (size_t i = 1; i <= count; i++) {
        uint32_t same = i < count ? common(t, order[i - 1], order[i]) : 0;
        size_t from = i - 1;
        while (depth && open[depth - 1].length > same) {
            uint32_t length = open[--depth].length;
            from = open[depth].from;
            if (length > 1 && length <= LONGEST)
                BASE_TRY(
                    add(list, t, words, order[from], length, (double)(i - from) * length, error));
        }
        if (same && (!depth || open[depth - 1].length < same)) {
            open[depth].length = same;
            open[depth++].from = from;
        }
    }
    return SIFR_OK;
}

static int compare_seeds(const void *a, const void *b) {
    const text_seed *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    uint32_t size = x->size < y->size ? x->size : y->size;
    int order = memcmp(x->bytes, y->bytes, size);
    return order ? order : x->size < y->size ? -1 : x->size > y->size;
}

/* Characters with the number of times that they occur in the text. */
static sifr_status find_characters(const text_tokenizer_trainer *trainer, const text *t,
                                   seeds *list, sifr_error *error) {
    enum { CODES = 0x110000 };
    double *counts;
    uint32_t *places;
    sifr_status status = SIFR_OK;
    size_t at = 0;
    BASE_TRY(base_alloc(CODES, sizeof *counts, &counts, error));
    BASE_TRY_GOTO(status, base_alloc(CODES, sizeof *places, &places, error), no_places);
    for (size_t w = 0; w < trainer->words.count; w++, at++) {
        const text_table_item *item = &trainer->words.items[w];
        for (; t->offsets[at] < item->offset + item->size; at++) {
            counts[t->codes[at]] += (double)trainer->counts[w];
            places[t->codes[at]] = (uint32_t)at;
        }
    }
    for (uint32_t c = 1; c < CODES && status == SIFR_OK; c++) {
        if (counts[c] > 0) status = add(list, t, &trainer->words, places[c], 1, counts[c], error);
    }
    free(places);
no_places:
    free(counts);
    return status;
}

sifr_status text_train_seeds(const text_tokenizer_trainer *trainer, size_t limit, text_seed **out,
                             size_t *count, size_t *characters, sifr_error *error) {
    text t = {0};
    seeds single = {0}, longer = {0};
    uint32_t *order = NULL;
    size_t places = 0;
    sifr_status status = lay_out(&trainer->words, &t, error);
    if (status == SIFR_OK) status = find_characters(trainer, &t, &single, error);
    if (status == SIFR_OK) status = sort_places(&t, &order, &places, error);
    if (status == SIFR_OK)
        status = find_repeated(&t, &trainer->words, order, places, &longer, error);
    if (status == SIFR_OK) {
        if (single.count) qsort(single.items, single.count, sizeof *single.items, compare_seeds);
        if (longer.count) qsort(longer.items, longer.count, sizeof *longer.items, compare_seeds);
        size_t kept = limit > single.count ? limit - single.count : 0;
        if (kept > longer.count) kept = longer.count;
        status = base_grow(&single.items, &single.capacity, single.count + kept + 1,
                           sizeof *single.items, error);
        if (status == SIFR_OK) {
            if (kept)
                memcpy(single.items + single.count, longer.items, kept * sizeof *longer.items);
            *characters = single.count;
            *count = single.count + kept;
            *out = single.items;
            single.items = NULL;
        }
    }
    free(single.items);
    free(longer.items);
    free(order);
    free(t.codes);
    free(t.offsets);
    return status;
}
