/* Packing: several rows in a sequence, one behind the other, best fit first. */
#ifndef DATA_CHAT_PACKS_H
#define DATA_CHAT_PACKS_H

#include <stdint.h>

#include "base/errors.h"

/* The rows of pack p are rows[starts[p]] … rows[starts[p + 1] - 1], in their order. */
typedef struct data_chat_packs {
    int64_t *starts; /* count + 1 */
    int64_t *rows;   /* as many as were packed */
    int64_t count;
} data_chat_packs;

/* Packs rows 0 … count - 1 of lengths 1 … capacity into sequences of `capacity` tokens, the longest
 * first (of equals the earlier), each into the sequence that it fills best: that with the least
 * space left that is enough (of equals the one that has had it for longest), else a new one. As
 * TRL's "bfd". Free with data_chat_packs_free. */
sifr_status data_chat_packs_make(const int64_t *lengths, int64_t count, int64_t capacity,
                                 data_chat_packs *out, sifr_error *error) SIFR_MUST_CHECK;
void data_chat_packs_free(data_chat_packs *packs); /* harmless on zeroed ones */

#endif
