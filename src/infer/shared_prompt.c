#include "infer/shared_prompt.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

enum { LAST, COMMON }; /* of g->kept */

sifr_status infer_shared_open(infer_generation *g, sifr_error *error) {
    g->state_bytes = infer_state_bytes(g->inference);
    if (!g->state_bytes) return SIFR_OK;
    for (int i = 0; i < INFER_KEPT; i++)
        BASE_TRY(base_alloc((size_t)g->state_bytes, 1, &g->kept[i].state, error));
    return base_alloc((size_t)g->words, sizeof *g->kept_logits, &g->kept_logits, error);
}

void infer_shared_close(infer_generation *g) {
    for (int i = 0; i < INFER_KEPT; i++) {
        text_tokenizer_ids_free(&g->kept[i].ids);
        free(g->kept[i].state);
        g->kept[i] = (infer_kept){.state = NULL};
    }
    free(g->kept_logits);
    g->kept_logits = NULL;
}

static size_t common(const text_tokenizer_ids *a, const text_tokenizer_ids *b) {
    size_t same = 0;
    while (same < a->count && same < b->count && a->ids[same] == b->ids[same]) same++;
    return same;
}

static sifr_status copy_ids(const text_tokenizer_ids *from, size_t count, text_tokenizer_ids *to,
                            sifr_error *error) {
    to->count = 0;
    BASE_TRY(base_grow(&to->ids, &to->capacity, count, sizeof *to->ids, error));
    memcpy(to->ids, from->ids, count * sizeof *to->ids);
    to->count = count;
    return SIFR_OK;
}

/* The slot that has most of the prompt's rows, its own before others; *count: how many. */
static int64_t find_rows(const infer_generation *g, const infer_sequence *q, size_t *count) {
    bool vary = infer_angles_vary(g->inference);
    int64_t best = q->slot;
    *count = 0;
    for (int64_t i = 0; i < g->slots; i++) {
        int64_t slot = (q->slot + i) % g->slots;
        size_t same = common(&g->cached[slot], &q->ids);
        if (vary && g->cached[slot].count > q->ids.count) same = 0;
        if (same > *count) best = slot, *count = same;
    }
    return best;
}

/* The copy of a state that reaches furthest into the prompt and no further than the rows. */
static infer_kept *find_kept(infer_generation *g, const infer_sequence *q, size_t rows) {
    infer_kept *best = NULL;
    for (int i = 0; i < INFER_KEPT && g->state_bytes; i++) {
        infer_kept *k = &g->kept[i];
        bool whole = i == LAST && k->ids.count == q->ids.count; /* its logits are there */
        if (k->ids.count == 0 || k->ids.count > rows) continue;
        if (common(&k->ids, &q->ids) < k->ids.count) continue;
        if (k->ids.count == q->ids.count && !whole) continue;
        if (!best || k->ids.count > best->ids.count) best = k;
    }
    return best;
}

static sifr_status keep(infer_generation *g, const infer_sequence *q, size_t count, int which,
                        sifr_error *error) {
    infer_kept *k = &g->kept[which];
    k->ids.count = 0;
    BASE_TRY(infer_get_state(g->inference, q->slot, k->state, error));
    if (which == LAST)
        memcpy(g->kept_logits, g->logits + q->slot * g->words,
               (size_t)g->words * sizeof *g->logits);
    return copy_ids(&q->ids, count, &k->ids, error);
}

/* Of the prompt's ids the slot has so many when this is done. */
static sifr_status take(infer_generation *g, const infer_sequence *q, size_t *have,
                        sifr_error *error) {
    size_t rows, own = g->cached[q->slot].count;
    int64_t from = find_rows(g, q, &rows);
    bool goes_on = common(&g->cached[q->slot], &q->ids) == own && own < q->ids.count;
    const infer_kept *kept = find_kept(g, q, rows);
    if (!g->state_bytes)
        *have = rows < q->ids.count ? rows : q->ids.count - 1; /* the logits of one are wanted */
    else
        *have = kept ? kept->ids.count : 0;
    if (goes_on && own >= *have) { /* its state, too, is that of its rows */
        *have = own;
        return SIFR_OK;
    }
    if (*have && from != q->slot)
        BASE_TRY(infer_copy_rows(g->inference, from, q->slot, (int64_t)*have, error));
    if (!kept) return SIFR_OK;
    if (*have == q->ids.count)
        memcpy(g->logits + q->slot * g->words, g->kept_logits,
               (size_t)g->words * sizeof *g->logits);
    return infer_set_state(g->inference, q->slot, kept->state, error);
}

static sifr_status compute(infer_generation *g, const infer_sequence *q, size_t first, size_t end,
                           sifr_error *error) {
    g->computed += (int64_t)(end - first);
    return infer_append(g->inference, q->slot, q->ids.ids + first, (int64_t)(end - first),
                        (int64_t)first, g->logits + q->slot * g->words, error);
}

/* Where the prompt leaves others, in whole chunks behind `have`: a copy there costs no more calls
 * of the model. 0: at no such place. */
static size_t find_common(const infer_generation *g, const infer_sequence *q, size_t have) {
    size_t part = common(&g->kept[LAST].ids, &q->ids), chunk = (size_t)g->chunk;
    for (int64_t i = 0; i < g->slots; i++) {
        size_t same = common(&g->cached[i], &q->ids);
        if (same > part) part = same;
    }
    if (part <= have || part >= q->ids.count) return 0;
    size_t at = have + (part - have) / chunk * chunk;
    return at > have && at > g->kept[COMMON].ids.count ? at : 0;
}

sifr_status infer_shared_fill(infer_generation *g, const infer_sequence *q, sifr_error *error) {
    text_tokenizer_ids *cached = &g->cached[q->slot];
    size_t have, at;
    BASE_TRY(take(g, q, &have, error));
    at = g->state_bytes ? find_common(g, q, have) : 0;
    cached->count = 0; /* if this fails */
    if (at) {
        BASE_TRY(compute(g, q, have, at, error));
        BASE_TRY(keep(g, q, at, COMMON, error));
        have = at;
    }
    if (have < q->ids.count) {
        BASE_TRY(compute(g, q, have, q->ids.count, error));
        if (g->state_bytes) BASE_TRY(keep(g, q, q->ids.count, LAST, error));
    }
    return copy_ids(&q->ids, q->ids.count, cached, error);
}
