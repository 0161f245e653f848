/* Which rank writes which part of a checkpoint. Every rank computes the same layout, so only
 * checksums are exchanged. Each rank has files of its own; each element of each part is in exactly
 * one file.
 */
#ifndef CHECKPOINT_LAYOUT_H
#define CHECKPOINT_LAYOUT_H

#include "checkpoint/manifest.h"

typedef struct checkpoint_layout {
    checkpoint_range *ranges; /* by file, and so by rank */
    size_t count, capacity;
    size_t *first_file; /* first file of each rank, and the end: ranks + 1 entries */
    size_t most_files;  /* of any rank */
    size_t files;
    uint64_t bytes; /* of all values */
    bool cut;       /* some ranges are of blocks */
} checkpoint_layout;

/* A file is full at `file_bytes`. Free with checkpoint_layout_free, even after a failure. */
sifr_status checkpoint_layout_make(const sifr_engine *engine, uint64_t file_bytes,
                                   checkpoint_layout *out, sifr_error *error) SIFR_MUST_CHECK;
void checkpoint_layout_free(checkpoint_layout *layout);

/* The ranges of a file: *first is the first one; returns their number. */
size_t checkpoint_layout_file(const checkpoint_layout *layout, size_t file, size_t *first);

/* "state-00001-of-00004.safetensors" */
void checkpoint_file_name(char out[64], size_t file, size_t files);

#endif
