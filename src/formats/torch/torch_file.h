/* pytorch_model.bin as torch.save has written it since PyTorch 1.6: a zip archive of a pickle and
 * of the storages that it names. Mapped like safetensors, and nothing in it is ever run. Only a
 * tensor whose elements lie in another order than row-major (a transposed view) is copied. */
#ifndef FORMATS_TORCH_FILE_H
#define FORMATS_TORCH_FILE_H

#include "formats/safetensors/safetensors.h"

/* An open file. Owns the tensors, their names, the copies and the mapping. Tensors over one storage
 * (tied weights) share their bytes. As for safetensors, a file that another process cuts short
 * makes later reads fail with SIGBUS. */
typedef struct formats_torch_file {
    formats_tensor *tensors; /* sorted by name, bytewise */
    size_t count;
    char *names;
    uint8_t *copies;
    base_map map; /* empty after a parse of the caller's memory */
} formats_torch_file;

/* Reads the file in data[0…size); the tensors point into it. `name` begins an error's message.
 * SIFR_FAILED for whatever is wrong in the bytes, for the form before PyTorch 1.6, and for anything
 * but a dict of dense tensors. */
sifr_status formats_torch_parse(const void *data, size_t size, const char *name,
                                formats_torch_file *out, sifr_error *error) SIFR_MUST_CHECK;

sifr_status formats_torch_open(const char *path, formats_torch_file *out,
                               sifr_error *error) SIFR_MUST_CHECK;
void formats_torch_close(formats_torch_file *file); /* harmless on a zeroed one */

#endif
