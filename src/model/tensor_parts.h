/* Equal things that tensor ranks share out: blocks of words, heads, groups of columns. */
#ifndef MODEL_TENSOR_PARTS_H
#define MODEL_TENSOR_PARTS_H

#include <stdint.h>

/* Things `first` … `end` - 1; none: first == end. */
typedef struct model_portion {
    int64_t first, end;
} model_portion;

/* What the rank at `place`, one of `ranks`, has of `count` things, which lie in the order of the
 * ranks. The portions are as equal as can be, the larger ones first, so rank 0 has the most. */
model_portion model_portion_of(int64_t count, int32_t ranks, int32_t place);

#endif
