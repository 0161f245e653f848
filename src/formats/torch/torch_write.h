/* Files that torch.load reads: a pickle of plain values, and at most one tensor, in a zip archive
 * of stored entries with zip64, as torch.save makes it. */
#ifndef FORMATS_TORCH_WRITE_H
#define FORMATS_TORCH_WRITE_H

#include <jansson.h>

#include "formats/safetensors/safetensors.h"

enum { FORMATS_TORCH_PIECE = 1 << 16 }; /* elements */

/* Gives elements first … first + count - 1 of the tensor; called in order, for at most
 * FORMATS_TORCH_PIECE of them at a time. */
typedef sifr_status (*formats_torch_give)(void *user, int64_t first, int64_t count, float *out,
                                          sifr_error *error);

/* Objects of `value` become dicts, lists stay lists. With a tensor, of type BASE_FP32, the object
 * has it under the key tensor->name; without a value the file is the tensor itself. The file
 * appears whole or not at all. */
sifr_status formats_torch_write(const char *path, const json_t *value,
                                const formats_tensor_spec *tensor, formats_torch_give give,
                                void *user, sifr_error *error) SIFR_MUST_CHECK;

#endif
