/* Words of a vocabulary that tensor ranks divide among them: each has some of its blocks, in
 * order. */
#ifndef DEVICE_WORDS_H
#define DEVICE_WORDS_H

#include <stdint.h>

/* What w0's rows, and w1's elements, are of a vocabulary. */
typedef struct device_words {
    int64_t first, count; /* words first … first + count - 1; more rows, or elements, are unused */
    int64_t all;          /* of the vocabulary; 0: w0 has all of it */
} device_words;

/* Heads compute by blocks of so many words, which the last one has fewer of. Blocks follow from
 * the whole vocabulary, so whoever computes one does it alike. */
static inline int64_t device_words_block(int64_t all) {
    return all >= 16384 ? 1024 : 256;
}

static inline int64_t device_word_blocks(int64_t all) {
    int64_t block = device_words_block(all);
    return (all + block - 1) / block;
}

/* Numbers of a row of DEVICE_HEAD_STATISTICS, at least. */
static inline int64_t device_word_statistics(int64_t all) {
    return 2 * device_word_blocks(all) + 1;
}

#endif
