/* The weights of a Hugging Face model folder: model.safetensors, or model.safetensors.index.json
 * and its shards; where neither is there, pytorch_model.bin, or pytorch_model.bin.index.json and
 * its shards. Mapped; what torch_file.h says of copies holds. */
#ifndef FORMATS_WEIGHTS_H
#define FORMATS_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "formats/folder.h"
#include "formats/safetensors/safetensors.h"

typedef struct formats_weights formats_weights; /* owns the mappings and the tensors */

/* Whether the folder has a file of weights that formats_weights_open tries, or an index of them. */
bool formats_weights_there(const char *directory);

/* Opens a model folder, or one .safetensors or .bin file. SIFR_FAILED for anything that is missing,
 * damaged, contradictory or outside of the folder. */
sifr_status formats_weights_open(const char *path, formats_weights **out,
                                 sifr_error *error) SIFR_MUST_CHECK;
void formats_weights_close(formats_weights *weights); /* harmless on NULL */

/* Says what the index has wrong that does no harm: tensors that it does not name, "total_size". */
void formats_weights_warn(const formats_weights *weights, const sifr_log *log);

size_t formats_weights_count(const formats_weights *weights);
/* By position, sorted by name over all shards. */
const formats_tensor *formats_weights_at(const formats_weights *weights, size_t position);
const formats_tensor *formats_weights_find(const formats_weights *weights, const char *name);
uint64_t formats_weights_bytes(const formats_weights *weights); /* of all tensors together */
size_t formats_weights_file_count(const formats_weights *weights);

/* An index of weights: which file holds which tensor, sorted by tensor. */
typedef struct formats_index_entry {
    const char *tensor, *file; /* file: a bare name, checked */
} formats_index_entry;

typedef struct formats_index {
    formats_index_entry *entries;
    size_t count;
    int64_t total_size; /* bytes of all tensors; -1 where absent */
    void *json;         /* owns the strings */
} formats_index;

/* Reads an index from memory, of files whose names end in `ending` (".safetensors", ".bin"); `name`
 * begins an error's message. */
sifr_status formats_index_parse(const char *text, size_t size, const char *ending, const char *name,
                                formats_index *out, sifr_error *error) SIFR_MUST_CHECK;
void formats_index_free(formats_index *index);

/* Asked for tensor `position` of the list: append exactly its bytes, in pieces of any size. */
typedef sifr_status (*formats_fill)(void *user, size_t position, formats_safetensors_writer *writer,
                                    sifr_error *error);

/* Writes the tensors into an existing folder, best a fresh one: as model.safetensors, or, where
 * they take more than max_shard_bytes (0: 5 GB, 5e9), as model-00001-of-0000N.safetensors and an
 * index that comes last. Shards are cut in list order; in a file, tensors lie in the format's
 * conventional order, and `fill` is called in that order. Each file appears whole or not at all;
 * when one fails, those before go. Weights of another layout in the folder (an index where one file
 * is to be written, and the like) are SIFR_FAILED. */
sifr_status formats_weights_write(const char *directory, const formats_tensor_spec *specs,
                                  size_t count, uint64_t max_shard_bytes, formats_fill fill,
                                  void *user, sifr_error *error) SIFR_MUST_CHECK;

#endif
