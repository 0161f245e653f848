/* Errors and factors of compressed gradients (pass_compress.c) in a checkpoint. They belong to
 * ranks, not to weights: each rank writes a file, compressed-0000R-of-0000N.safetensors, with the
 * tensors "errors" and "factors", and the manifest has
 *
 *     "compression": {"data_ranks": 4, "stages": 1, "tensors": 1, "first_file": 4}
 *
 * the file of rank r being number first_file + r. A run on other ranks begins without errors. */
#ifndef CHECKPOINT_COMPRESSED_H
#define CHECKPOINT_COMPRESSED_H

#include "checkpoint/manifest.h"

/* Whether there is something to save, the same on all ranks: some step was compressed. */
bool checkpoint_has_compressed(const sifr_engine *engine);
int64_t checkpoint_compressed_bytes(const sifr_engine *engine); /* of this rank */

/* Writes this rank's file into `directory`, and reads it back. */
sifr_status checkpoint_save_compressed(const sifr_engine *engine, const char *directory,
                                       checkpoint_sum *sum, sifr_error *error) SIFR_MUST_CHECK;

/* On rank 0: the files of all ranks, by rank, go to `files` and the entry into the manifest. */
sifr_status checkpoint_add_compressed(json_t *manifest, json_t *files, const sifr_engine *engine,
                                      const checkpoint_sum *sums,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* Fills the engine's errors and factors from an open manifest, or with zeros: what this rank reads
 * is verified. Rank 0 says what is dropped, and why. */
sifr_status checkpoint_load_compressed(const checkpoint_opened *opened, const sifr_engine *engine,
                                       const char *directory, const sifr_log *log,
                                       sifr_error *error) SIFR_MUST_CHECK;

#endif
