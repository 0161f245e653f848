/* cuBLASLt without a GPU: the functions of cuda_lt over loops of the host, on the memory and the
 * streams of the fake driver, which must be open.
 *
 * What it keeps of the real one: layouts, types, beta, a bias, alignments that were promised,
 * workspace (which it writes), and that an algorithm is proposed by shape. The order of a sum
 * depends on the algorithm, so a product that takes another one has other bits. Without a mask of
 * reduction schemes it proposes one that cuts sums. */
#ifndef FAKE_LT_H
#define FAKE_LT_H

#include "device/cuda/cuda_lt.h"

/* What goes wrong; all 0: nothing. */
typedef struct fake_lt_trouble {
    cuda_lt_status create, heuristic, multiply; /* results of these calls */
    bool nothing;                               /* the heuristic proposes nothing */
    bool no_parts;                              /* AlgoCheck takes no shape */
    bool cuts;                                  /* the mask of reduction schemes is ignored */
    bool short_sums;                            /* the last term of each sum is left out */
    uint64_t kernels; /* bytes of the GPU that its first product takes for good */
} fake_lt_trouble;

/* Sets all counts to 0. */
void fake_lt_open(const fake_lt_trouble *trouble, cuda_lt *out);

typedef struct fake_lt_counts {
    int64_t handles, objects; /* given out, and not destroyed */
    int64_t made, asked, checked, products;
} fake_lt_counts;
fake_lt_counts fake_lt_count(void);

#endif
