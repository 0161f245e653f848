#include "data/chat/chat_packs.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"

/* Packs with the same space left wait in a line; a bit says whether there is a line. */
typedef struct pack_lines {
    int64_t *first, *last; /* by space left; -1: none */
    uint64_t *some;
    int64_t *behind; /* by pack: the next in its line */
    int64_t *pack;   /* by row */
    int64_t *sizes;  /* by pack: its rows; then where the next of them goes */
    int64_t *order;  /* the rows, the longest first */
    int64_t capacity, count;
} pack_lines;

static void free_lines(pack_lines *l) {
    free(l->first);
    free(l->last);
    free(l->some);
    free(l->behind);
    free(l->pack);
    free(l->sizes);
    free(l->order);
}

static sifr_status take_lines(pack_lines *l, int64_t rows, sifr_error *error) {
    size_t lines, some = (size_t)base_max_i64(rows, 1);
    int64_t sum;
    if (!base_add_i64(l->capacity, 2, &sum)) return base_fail_alloc(error, INT64_MAX);
    lines = (size_t)sum;
    BASE_TRY(base_alloc(lines, sizeof *l->first, &l->first, error));
    BASE_TRY(base_alloc(lines, sizeof *l->last, &l->last, error));
    BASE_TRY(base_alloc(lines / 64 + 1, sizeof *l->some, &l->some, error));
    BASE_TRY(base_alloc(some, sizeof *l->behind, &l->behind, error));
    BASE_TRY(base_alloc(some, sizeof *l->pack, &l->pack, error));
    BASE_TRY(base_alloc(some + 1, sizeof *l->sizes, &l->sizes, error));
    BASE_TRY(base_alloc(some, sizeof *l->order, &l->order, error));
    for (size_t i = 0; i < lines; i++) l->first[i] = l->last[i] = -1;
    return SIFR_OK;
}

/* Counts the lengths, and puts each row where the longer ones and the earlier ones of its own
 * length end. `first` is free for that until there are lines. */
static void sort_rows(pack_lines *l, const int64_t *lengths, int64_t count) {
    int64_t *at = l->first;
    memset(at, 0, (size_t)(l->capacity + 2) * sizeof *at);
    for (int64_t i = 0; i < count; i++) at[lengths[i]]++;
    for (int64_t length = l->capacity, sum = 0; length >= 0; length--) {
        int64_t here = at[length];
        at[length] = sum;
        sum += here;
    }
    for (int64_t i = 0; i < count; i++) l->order[at[lengths[i]]++] = i;
    for (int64_t i = 0; i < l->capacity + 2; i++) at[i] = -1;
}

/* The least space of a line that is at least `wanted`; -1: there is none. */
static int64_t find_space(const pack_lines *l, int64_t wanted) {
    int64_t word = wanted / 64, words = (l->capacity + 2) / 64 + 1;
    uint64_t bits = l->some[word] & ~UINT64_C(0) << wanted % 64;
    while (!bits && ++word < words) bits = l->some[word];
    return bits ? word * 64 + __builtin_ctzll(bits) : -1;
}

static int64_t take_first(pack_lines *l, int64_t space) {
    int64_t pack = l->first[space];
    l->first[space] = l->behind[pack];
    if (l->first[space] >= 0) return pack;
    l->last[space] = -1;
    l->some[space / 64] &= ~(UINT64_C(1) << space % 64);
    return pack;
}

static void stand_last(pack_lines *l, int64_t space, int64_t pack) {
    l->behind[pack] = -1;
    if (l->last[space] >= 0)
        l->behind[l->last[space]] = pack;
    else
        l->first[space] = pack;
    l->last[space] = pack;
    l->some[space / 64] |= UINT64_C(1) << space % 64;
}

static void choose_packs(pack_lines *l, const int64_t *lengths, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        int64_t row = l->order[i], length = lengths[row], space = find_space(l, length);
        int64_t pack = space < 0 ? l->count++ : take_first(l, space);
        if (space < 0) space = l->capacity;
        l->pack[row] = pack;
        l->sizes[pack]++;
        if (space > length) stand_last(l, space - length, pack);
    }
}

sifr_status data_chat_packs_make(const int64_t *lengths, int64_t count, int64_t capacity,
                                 data_chat_packs *out, sifr_error *error) {
    pack_lines l = {.capacity = capacity};
    *out = (data_chat_packs){0};
    sifr_status status = take_lines(&l, count, error);
    if (status == SIFR_OK) {
        sort_rows(&l, lengths, count);
        choose_packs(&l, lengths, count);
        status = base_alloc((size_t)l.count + 1, sizeof *out->starts, &out->starts, error);
    }
    if (status == SIFR_OK)
        status = base_alloc((size_t)base_max_i64(count, 1), sizeof *out->rows, &out->rows, error);
    if (status == SIFR_OK) {
        out->count = l.count;
        for (int64_t p = 0; p < l.count; p++) out->starts[p + 1] = out->starts[p] + l.sizes[p];
        memcpy(l.sizes, out->starts, (size_t)l.count * sizeof *l.sizes);
        for (int64_t i = 0; i < count; i++) out->rows[l.sizes[l.pack[l.order[i]]]++] = l.order[i];
    } else {
        data_chat_packs_free(out);
    }
    free_lines(&l);
    return status;
}

void data_chat_packs_free(data_chat_packs *packs) {
    free(packs->starts);
    free(packs->rows);
    *packs = (data_chat_packs){0};
}
