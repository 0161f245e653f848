/* Which words of a vocabulary a tensor rank has. Heads compute by blocks of words
 * (device/kernels/words.h), and a rank has whole blocks, so that whoever computes one does it
 * alike. The ranks' tables have room for the most words that one of them has: so all parts of a
 * model are equally large, and a rank that has no words has some rows, of zeros. */
#ifndef MODEL_SHARD_WORDS_H
#define MODEL_SHARD_WORDS_H

#include "model/description.h"

/* Marks the nodes whose words are cut in `products`, by node: MODEL_CUT_WORDS of shard.h. The head,
 * and the tables of tokens, if they are its weight or of as many words. SIFR_USAGE: they must be
 * (SIFR_VOCAB_SPLIT), and cannot. */
sifr_status model_find_words(const sifr_model *model, sifr_vocab_parallel how, int32_t ranks,
                             bool exact, uint8_t *products, sifr_error *error) SIFR_MUST_CHECK;

/* Cuts the weights of such a node of `from`, in a rank's part. */
void model_cut_words(const sifr_model *from, const model_node *node, int32_t ranks, int32_t place,
                     sifr_model *part);

/* Of such a weight of a part, what the rank at `place` has. */
model_cut model_words_cut(const model_weight *weight, int32_t ranks, int32_t place);

/* Tells the kernels of such a node which words the rank has. */
void model_give_words(const sifr_model *from, model_node *node, int32_t ranks, int32_t place);

/* Of a node of a part; all == 0: its words are not cut. */
device_words model_words_of(const model_node *node);

#endif
