/* The longest of many byte strings that a text begins with, and all of them: a trie whose nodes
 * hold their children by byte, side by side. */
#ifndef TEXT_TOKENIZER_TRIE_H
#define TEXT_TOKENIZER_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef struct text_prefix {
    const uint8_t *bytes;
    size_t size;
    int32_t value;
} text_prefix;

typedef struct text_prefix_node {
    uint32_t children; /* of byte `low` … in `next` */
    int32_t value;     /* or -1 */
    uint8_t low;
    bool sparse;    /* `count` pairs of byte and child, in place of a child for each byte */
    uint16_t count; /* bytes from `low` on, or pairs */
} text_prefix_node;

/* Start with {0}; node 0 is the root. */
typedef struct text_prefixes {
    text_prefix_node *nodes;
    size_t count, capacity;
    uint32_t *next; /* node, or 0 */
    size_t next_count, next_capacity;
} text_prefixes;

/* From `list`, which is sorted in place; of two alike the one that comes last in it counts. */
sifr_status text_prefixes_build(text_prefixes *prefixes, text_prefix *list, size_t count,
                                sifr_error *error) SIFR_MUST_CHECK;
void text_prefixes_free(text_prefixes *prefixes);

/* The child of `node` by a byte, or 0. */
static inline uint32_t text_prefixes_step(const text_prefixes *prefixes, uint32_t node,
                                          uint8_t byte) {
    const text_prefix_node *n = &prefixes->nodes[node];
    const uint32_t *next = prefixes->next + n->children;
    if (!n->sparse) {
        unsigned at = (unsigned)byte - n->low;
        return at < n->count ? next[at] : 0;
    }
    size_t low = 0, high = n->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (next[2 * middle] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n->count && next[2 * low] == byte ? next[2 * low + 1] : 0;
}

#endif
