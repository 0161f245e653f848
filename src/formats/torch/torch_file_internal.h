/* What torch_file.c (dicts of tensors) and torch_tree.c (anything else) share. */
#ifndef FORMATS_TORCH_FILE_INTERNAL_H
#define FORMATS_TORCH_FILE_INTERNAL_H

#include "formats/torch/torch_file.h"
#include "formats/torch/torch_pickle.h"
#include "formats/torch/torch_zip.h"

typedef struct torch_reader {
    const char *name;
    size_t size; /* of the file */
    formats_zip zip;
    const char *folder; /* of the records: "archive/data.pkl" lies in "archive/" */
    size_t folder_length;
    formats_pickle pickle;
} torch_reader;

/* SIFR_FAILED for the form before PyTorch 1.6, and for a pointer of Git LFS. */
sifr_status formats_torch_check_form(const uint8_t *data, size_t size, const char *name,
                                     sifr_error *error) SIFR_MUST_CHECK;

/* The pickle of the archive, whose byte order is checked. */
sifr_status formats_torch_find_pickle(torch_reader *r, const formats_zip_entry **out,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* The tensor of a view, with its data where it lies in the file; *copy: bytes that its row-major
 * copy needs. The name comes later. */
sifr_status formats_torch_read_view(const torch_reader *r, const formats_torch_view *view,
                                    formats_tensor *t, uint64_t *copy,
                                    sifr_error *error) SIFR_MUST_CHECK;

#endif
