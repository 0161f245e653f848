#include "text/tokenizer/tokenizer_trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

static int compare(const void *a, const void *b) {
    const text_prefix *x = a, *y = b;
    size_t size = x->size < y->size ? x->size : y->size;
    int order = size ? memcmp(x->bytes, y->bytes, size) : 0;
    if (order) return order;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* A node of the trie that is still to be filled: its strings, which share `depth` bytes. */
typedef struct span {
    size_t from, to, depth;
} span;

typedef struct builder {
    text_prefixes *trie;
    const text_prefix *list;
    span *spans; /* by node */
    size_t span_capacity;
    sifr_error *error;
} builder;

static sifr_status add_node(builder *b, span s, uint32_t *node) {
    text_prefixes *t = b->trie;
    if (t->count > UINT32_MAX / 4) return base_fail_alloc(b->error, SIZE_MAX);
    BASE_TRY(base_grow(&t->nodes, &t->capacity, t->count + 1, sizeof *t->nodes, b->error));
    BASE_TRY(base_grow(&b->spans, &b->span_capacity, t->count + 1, sizeof *b->spans, b->error));
    b->spans[t->count] = s;
    t->nodes[t->count] = (text_prefix_node){.value = -1};
    *node = (uint32_t)t->count++;
    return SIFR_OK;
}

/* The end of the strings from `from` on whose byte at `depth` is the first one's. */
static size_t same_byte(const builder *b, size_t from, size_t to, size_t depth) {
    uint8_t byte = b->list[from].bytes[depth];
    size_t low = from, high = to;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (b->list[middle].bytes[depth] <= byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static sifr_status fill(builder *b, uint32_t at) {
    text_prefixes *t = b->trie;
    span s = b->spans[at];
    size_t kinds = 0, from = s.from;
    for (; from < s.to && b->list[from].size == s.depth; from++)
        t->nodes[at].value = b->list[from].value;
    if (from == s.to) return SIFR_OK;
    uint8_t low = b->list[from].bytes[s.depth], high = b->list[s.to - 1].bytes[s.depth];
    for (size_t i = from; i < s.to; i = same_byte(b, i, s.to, s.depth)) kinds++;
    size_t range = (size_t)(high - low) + 1;
    bool sparse = range > 8 * kinds;
    size_t places = sparse ? 2 * kinds : range, begin = t->next_count, k = 0;
    if (begin + places > UINT32_MAX) return base_fail_alloc(b->error, SIZE_MAX);
    BASE_TRY(base_grow(&t->next, &t->next_capacity, begin + places, sizeof *t->next, b->error));
    memset(t->next + begin, 0, places * sizeof *t->next);
    t->next_count += places;
    t->nodes[at].children = (uint32_t)begin;
    t->nodes[at].low = low;
    t->nodes[at].sparse = sparse;
    t->nodes[at].count = (uint16_t)(sparse ? kinds : range);
    for (size_t i = from, to; i < s.to; i = to, k++) {
        uint32_t child;
        uint8_t byte = b->list[i].bytes[s.depth];
        to = same_byte(b, i, s.to, s.depth);
        BASE_TRY(add_node(b, (span){i, to, s.depth + 1}, &child));
        if (sparse) t->next[begin + 2 * k] = byte;
        t->next[sparse ? begin + 2 * k + 1 : begin + (size_t)(byte - low)] = child;
    }
    return SIFR_OK;
}

sifr_status text_prefixes_build(text_prefixes *trie, text_prefix *list, size_t count,
                                sifr_error *error) {
    builder b = {.trie = trie, .list = list, .error = error};
    uint32_t root;
    if (count) qsort(list, count, sizeof *list, compare);
    sifr_status status = add_node(&b, (span){0, count, 0}, &root);
    for (uint32_t at = 0; status == SIFR_OK && at < trie->count; at++) status = fill(&b, at);
    free(b.spans);
    return status;
}

void text_prefixes_free(text_prefixes *trie) {
    free(trie->nodes);
    free(trie->next);
    *trie = (text_prefixes){0};
}
