/* Who writes what of a checkpoint: worked out alike on every rank, so that nothing but checksums is
 * exchanged. Each rank has files of its own; each element of each part is in one of them. */
#ifndef CHECKPOINT_LAYOUT_H
#define CHECKPOINT_LAYOUT_H

#include "checkpoint/manifest.h"

typedef struct checkpoint_layout {
    checkpoint_range *ranges; /* by file, and so by rank */
    size_t count, room;
    size_t *first_file; /* of each rank, and behind the last: one more than ranks */
    size_t most_files;  /* of any rank */
    size_t files;
    uint64_t bytes; /* of all values */
} checkpoint_layout;

/* A file is full at `file_bytes`. Free with checkpoint_layout_free, also after a failure. */
sifr_status checkpoint_layout_make(const sifr_engine *engine, uint64_t file_bytes,
                                   checkpoint_layout *out, sifr_error *error) SIFR_MUST_CHECK;
void checkpoint_layout_free(checkpoint_layout *layout);

/* The ranges of a file: those from *first on, as many as returned. */
size_t checkpoint_layout_file(const checkpoint_layout *layout, size_t file, size_t *first);

/* "state-00001-of-00004.safetensors" */
void checkpoint_file_name(char out[64], size_t file, size_t files);

#endif
