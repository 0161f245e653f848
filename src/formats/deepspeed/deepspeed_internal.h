/* Private to src/formats/deepspeed/. */
#ifndef FORMATS_DEEPSPEED_INTERNAL_H
#define FORMATS_DEEPSPEED_INTERNAL_H

#include "base/file.h"
#include "formats/deepspeed/deepspeed_checkpoint.h"
#include "formats/torch/torch_tree.h"

/* A part of a weight: elements that lie end to end in a file. */
typedef struct deepspeed_piece {
    const uint8_t *data;
    base_dtype dtype;
    int64_t count;
} deepspeed_piece;

struct formats_deepspeed {
    char folder[BASE_PATH_LENGTH];
    int stage;
    int64_t step;
    size_t ranks;
    formats_torch_tree **trees; /* that the pieces lie in */
    size_t tree_count, tree_capacity;
    formats_deepspeed_weight *weights;
    size_t count, capacity;
    deepspeed_piece *pieces;
    size_t piece_count, piece_capacity;
};

/* --- deepspeed_pieces.c --- */

/* Opens folder/name and keeps it. */
sifr_status formats_deepspeed_tree(formats_deepspeed *c, const char *name, formats_torch_tree **out,
                                   sifr_error *error) SIFR_MUST_CHECK;
/* A weight without pieces so far; its name is copied. SIFR_FAILED for a name that is no tensor's.
 */
sifr_status formats_deepspeed_add(formats_deepspeed *c, formats_pickle_text name, int rank,
                                  const int64_t *shape, const char *file,
                                  sifr_error *error) SIFR_MUST_CHECK;
/* Of the last weight. */
sifr_status formats_deepspeed_add_piece(formats_deepspeed *c, const formats_tensor *tensor,
                                        int64_t first, int64_t count,
                                        sifr_error *error) SIFR_MUST_CHECK;
/* A tensor of floats of one of the types that weights have. */
sifr_status formats_deepspeed_tensor(const formats_torch_tree *tree, formats_torch_node node,
                                     formats_tensor *out, sifr_error *error) SIFR_MUST_CHECK;

/* Whether the model states call it another name of a weight, as a tied head is. */
bool formats_deepspeed_shared(const formats_torch_tree *model, formats_pickle_text name);

/* deepspeed_zero.c, deepspeed_universal.c */
sifr_status formats_deepspeed_zero(formats_deepspeed *c, char **names, size_t count,
                                   sifr_error *error) SIFR_MUST_CHECK;
sifr_status formats_deepspeed_universal(formats_deepspeed *c, sifr_error *error) SIFR_MUST_CHECK;

#endif
