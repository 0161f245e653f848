/* The streaming writer of safetensors.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "base/json.h"
#include "formats/safetensors/safetensors.h"

int formats_tensor_spec_compare(const void *a, const void *b) {
    const formats_tensor_spec *x = a, *y = b;
    int bits = base_dtype_bits(y->dtype) - base_dtype_bits(x->dtype);
    if (bits) return bits;
    if (x->dtype != y->dtype) return x->dtype < y->dtype ? -1 : 1;
    return strcmp(x->name, y->name);
}

void formats_tensor_spec_sort(formats_tensor_spec *specs, size_t count) {
    if (count) qsort(specs, count, sizeof *specs, formats_tensor_spec_compare);
}

/* {"dtype": …, "shape": […], "data_offsets": [begin, end]}, or NULL. */
static json_t *tensor_entry(const formats_tensor_spec *spec, uint64_t begin, uint64_t end) {
    json_t *shape = json_array();
    for (int i = 0; shape && i < spec->rank; i++) {
        if (json_array_append_new(shape, json_integer(spec->shape[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", formats_dtype_name(spec->dtype), "shape",
                     shape, "data_offsets", (json_int_t)begin, (json_int_t)end);
}

/* The header, padded with blanks so that the tensors begin at a multiple of 8. */
static sifr_status make_header(const formats_tensor_spec *specs, size_t count, char **text,
                               uint64_t *length, uint64_t *data_bytes, sifr_error *error) {
    sifr_status status = SIFR_OK;
    uint64_t at = 0, bytes;
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    if (!header) return base_fail_alloc(error, 64);
    for (size_t i = 0; i < count; i++) {
        BASE_TRY_GOTO(status, formats_tensor_bytes(&specs[i], &bytes, error), done);
        uint64_t end = at + bytes;
        if (end > INT64_MAX) {
            status = base_fail(error, SIFR_FAILED, "tensor %.200s: the file would be too large",
                               specs[i].name);
            goto done;
        }
        if (json_object_get(header, specs[i].name)) {
            status = base_fail(error, SIFR_FAILED, "tensor %.200s: declared twice", specs[i].name);
            goto done;
        }
        if (json_object_set_new(header, specs[i].name, tensor_entry(&specs[i], at, end)) != 0) {
            status = base_fail(error, SIFR_FAILED, "tensor %.200s: its name cannot be written",
                               specs[i].name);
            goto done;
        }
        at = end;
    }
    char *dump = json_dumps(header, JSON_COMPACT);
    size_t used = dump ? strlen(dump) : 0, padded = (size_t)base_ceil_to((int64_t)used, 8);
    char *larger = dump ? realloc(dump, padded + 1) : NULL;
    if (!larger) {
        free(dump);
        status = base_fail_alloc(error, padded);
        goto done;
    }
    memset(larger + used, ' ', padded - used);
    *text = larger;
    *length = padded;
    *data_bytes = at;
    if (padded > FORMATS_HEADER_LIMIT) {
        free(larger);
        status = base_fail(error, SIFR_FAILED, "a header of %zu bytes, more than the limit of %d",
                           padded, FORMATS_HEADER_LIMIT);
    }
done:
    json_decref(header);
    return status;
}

sifr_status formats_safetensors_writer_open(formats_safetensors_writer *writer, const char *path,
                                            const formats_tensor_spec *specs, size_t count,
                                            sifr_error *error) {
    char *text = NULL;
    uint64_t length = 0, data_bytes = 0; /* set with SIFR_OK, which not every compiler sees */
    uint8_t prefix[8];
    memset(writer, 0, sizeof *writer);
    sifr_status status = make_header(specs, count, &text, &length, &data_bytes, error);
    if (status != SIFR_OK) return base_fail_in(error, status, "%s", path);
    BASE_TRY_GOTO(status, base_writer_open(&writer->file, path, error), done);
    writer->end = sizeof prefix + length + data_bytes;
    for (int i = 0; i < 8; i++) prefix[i] = (uint8_t)(length >> 8 * i);
    status = base_writer_write(&writer->file, prefix, sizeof prefix, error);
    if (status == SIFR_OK) status = base_writer_write(&writer->file, text, (size_t)length, error);
    if (status != SIFR_OK) base_writer_abort(&writer->file);
done:
    free(text);
    return status;
}

sifr_status formats_safetensors_append(formats_safetensors_writer *writer, const void *data,
                                       size_t size, sifr_error *error) {
    if (size > writer->end - writer->file.written) {
        return base_fail(error, SIFR_FAILED, "%s: more bytes than its tensors declare",
                         writer->file.path);
    }
    return base_writer_write(&writer->file, data, size, error);
}

sifr_status formats_safetensors_commit(formats_safetensors_writer *writer, sifr_error *error) {
    if (writer->file.written != writer->end) {
        sifr_status status =
            base_fail(error, SIFR_FAILED, "%s: %llu bytes less than its tensors declare",
                      writer->file.path, (unsigned long long)(writer->end - writer->file.written));
        base_writer_abort(&writer->file);
        return status;
    }
    return base_writer_commit(&writer->file, error);
}

void formats_safetensors_abort(formats_safetensors_writer *writer) {
    base_writer_abort(&writer->file);
}
