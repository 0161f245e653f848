#include "formats/safetensors/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "base/json.h"

enum { LENGTH_BYTES = 8 };

static const char *const dtype_names[BASE_DTYPES] = {
    [BASE_FP32] = "F32",
    [BASE_BF16] = "BF16",
    [BASE_FP16] = "F16",
    [BASE_UINT64] = "U64",
    [BASE_INT64] = "I64",
    [BASE_FP64] = "F64",
    [BASE_COMPLEX64] = "C64",
    [BASE_UINT32] = "U32",
    [BASE_INT32] = "I32",
    [BASE_UINT16] = "U16",
    [BASE_INT16] = "I16",
    [BASE_FP8_E8M0] = "F8_E8M0",
    [BASE_FP8_E4M3] = "F8_E4M3",
    [BASE_FP8_E5M2] = "F8_E5M2",
    [BASE_FP8_E4M3FNUZ] = "F8_E4M3FNUZ",
    [BASE_FP8_E5M2FNUZ] = "F8_E5M2FNUZ",
    [BASE_INT8] = "I8",
    [BASE_UINT8] = "U8",
    [BASE_BOOL] = "BOOL",
    [BASE_FP6_E3M2] = "F6_E3M2",
    [BASE_FP6_E2M3] = "F6_E2M3",
    [BASE_FP4] = "F4",
};

const char *formats_dtype_name(base_dtype dtype) {
    return dtype_names[dtype];
}

base_dtype formats_value_type(const formats_tensor *tensor) {
    return tensor->scales ? BASE_BF16 : tensor->dtype;
}

/* Where in the file a tensor lies; sorted to see that they cover it without gap or overlap. */
typedef struct tensor_range {
    uint64_t begin, end;
    size_t tensor;
} tensor_range;

static int compare_ranges(const void *a, const void *b) {
    const tensor_range *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int compare_tensors(const void *a, const void *b) {
    return strcmp(((const formats_tensor *)a)->name, ((const formats_tensor *)b)->name);
}

static sifr_status check_name(const char *key, const char *file, sifr_error *error) {
    size_t length = strlen(key);
    if (length == 0 || length > FORMATS_NAME_LIMIT) {
        return base_fail(error, SIFR_FAILED,
                         "%s: a tensor's name has %zu bytes, 1 to %d are allowed", file, length,
                         FORMATS_NAME_LIMIT);
    }
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)key[i] < 0x20 || key[i] == 0x7F) {
            return base_fail(error, SIFR_FAILED,
                             "%s: a tensor's name has a control character at byte %zu", file, i);
        }
    }
    return SIFR_OK;
}

/* A JSON integer >= 0; a real number, 12.0 included, is none. */
static bool read_size(const json_t *value, int64_t *out) {
    if (!json_is_integer(value)) return false;
    *out = (int64_t)json_integer_value(value);
    return *out >= 0;
}

static sifr_status read_shape(const json_t *list, const char *file, formats_tensor *tensor,
                              sifr_error *error) {
    if (!json_is_array(list) || json_array_size(list) > FORMATS_RANK_LIMIT) {
        return base_fail(error, SIFR_FAILED,
                         "%s: tensor %.200s: \"shape\" must be a list of at most %d sizes", file,
                         tensor->name, FORMATS_RANK_LIMIT);
    }
    tensor->rank = (int)json_array_size(list);
    for (int i = 0; i < tensor->rank; i++) {
        if (!read_size(json_array_get(list, (size_t)i), &tensor->shape[i])) {
            return base_fail(
                error, SIFR_FAILED,
                "%s: tensor %.200s: \"shape\" holds something that is not a whole number >= 0",
                file, tensor->name);
        }
    }
    return SIFR_OK;
}

/* Elements and bytes of a shape; false when they do not fit in 63 bits or end inside of a byte.
 * The zero comes last, so that [2^40, 2^40, 0] does not pass either. */
static bool shape_bytes(int rank, const int64_t *shape, base_dtype dtype, int64_t *elements,
                        uint64_t *bytes) {
    int64_t product = 1, bits;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (shape[i] == 0) {
            empty = true;
        } else if (!base_mul_i64(product, shape[i], &product)) {
            return false;
        }
    }
    if (!base_mul_i64(product, base_dtype_bits(dtype), &bits)) return false;
    if (empty) product = bits = 0;
    *elements = product;
    *bytes = (uint64_t)bits / 8;
    return bits % 8 == 0;
}

static sifr_status read_tensor(const char *file, const char *key, const json_t *entry,
                               uint64_t buffer_size, formats_tensor *tensor, tensor_range *range,
                               sifr_error *error) {
    BASE_TRY(check_name(key, file, error));
    tensor->name = key;
    if (!json_is_object(entry)) {
        return base_fail(error, SIFR_FAILED, "%s: tensor %.200s: not a JSON object", file, key);
    }
    if (json_object_size(entry) != 3) {
        return base_fail(error, SIFR_FAILED,
                         "%s: tensor %.200s: must have exactly \"dtype\", \"shape\" and "
                         "\"data_offsets\"",
                         file, key);
    }
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    int found = BASE_NONE + 1;
    while (dtype && found < BASE_DTYPES && strcmp(dtype_names[found], dtype)) found++;
    if (!dtype || found == BASE_DTYPES) {
        return base_fail(error, SIFR_FAILED, "%s: tensor %.200s: unknown dtype %.40s", file, key,
                         dtype ? dtype : "(not a string)");
    }
    tensor->dtype = (base_dtype)found;
    BASE_TRY(read_shape(json_object_get(entry, "shape"), file, tensor, error));

    const json_t *offsets = json_object_get(entry, "data_offsets");
    int64_t begin, end;
    if (json_array_size(offsets) != 2 || !read_size(json_array_get(offsets, 0), &begin) ||
        !read_size(json_array_get(offsets, 1), &end)) {
        return base_fail(error, SIFR_FAILED,
                         "%s: tensor %.200s: \"data_offsets\" must be two whole numbers", file,
                         key);
    }
    if (begin > end || (uint64_t)end > buffer_size) {
        return base_fail(error, SIFR_FAILED,
                         "%s: tensor %.200s: lies at %lld … %lld of %llu bytes: the file is "
                         "damaged or cut short",
                         file, key, (long long)begin, (long long)end,
                         (unsigned long long)buffer_size);
    }
    if (!shape_bytes(tensor->rank, tensor->shape, tensor->dtype, &tensor->elements,
                     &tensor->bytes) ||
        tensor->bytes != (uint64_t)(end - begin)) {
        return base_fail(
            error, SIFR_FAILED,
            "%s: tensor %.200s: its shape and dtype do not match the %lld bytes of its offsets",
            file, key, (long long)(end - begin));
    }
    range->begin = (uint64_t)begin;
    range->end = (uint64_t)end;
    return SIFR_OK;
}

static sifr_status check_metadata(const char *file, const json_t *map, sifr_error *error) {
    const char *key;
    json_t *value;
    bool good = json_is_object(map);
    json_object_foreach((json_t *)(uintptr_t)map, key, value) good &= json_is_string(value);
    if (good) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: \"__metadata__\" must map strings to strings", file);
}

/* Each range must begin where the one before ended, from 0 to the file's end. */
static sifr_status check_cover(const char *file, const formats_safetensors *out,
                               tensor_range *ranges, uint64_t buffer_size, sifr_error *error) {
    uint64_t at = 0;
    if (out->count) qsort(ranges, out->count, sizeof *ranges, compare_ranges);
    for (size_t i = 0; i < out->count; i++) {
        if (ranges[i].begin != at) {
            return base_fail(error, SIFR_FAILED,
                             "%s: tensor %.200s: begins at byte %llu, where %llu was expected: "
                             "%s",
                             file, out->tensors[ranges[i].tensor].name,
                             (unsigned long long)ranges[i].begin, (unsigned long long)at,
                             ranges[i].begin < at ? "two tensors overlap" : "there is a gap");
        }
        at = ranges[i].end;
    }
    if (at != buffer_size) {
        return base_fail(error, SIFR_FAILED,
                         "%s: %llu bytes lie behind the last tensor: not a safetensors file, or "
                         "damaged",
                         file, (unsigned long long)(buffer_size - at));
    }
    return SIFR_OK;
}

/* The names move out of the JSON tree into one block, so that the tree can go. */
static sifr_status keep_names(formats_safetensors *out, sifr_error *error) {
    size_t bytes = 0, at = 0;
    for (size_t i = 0; i < out->count; i++) bytes += strlen(out->tensors[i].name) + 1;
    BASE_TRY(base_alloc(bytes, 1, &out->names, error));
    for (size_t i = 0; i < out->count; i++) {
        size_t length = strlen(out->tensors[i].name) + 1;
        memcpy(out->names + at, out->tensors[i].name, length);
        out->tensors[i].name = out->names + at;
        at += length;
    }
    return SIFR_OK;
}

static sifr_status read_header(const char *file, const json_t *header, const uint8_t *buffer,
                               uint64_t buffer_size, formats_safetensors *out, sifr_error *error) {
    const char *key;
    json_t *entry;
    tensor_range *ranges = NULL;
    sifr_status status = SIFR_OK;
    size_t entries = json_object_size(header);
    if (entries > FORMATS_TENSOR_LIMIT) {
        return base_fail(error, SIFR_FAILED, "%s: %zu tensors, more than the limit of %d", file,
                         entries, FORMATS_TENSOR_LIMIT);
    }
    BASE_TRY_GOTO(status, base_alloc(entries, sizeof *out->tensors, &out->tensors, error), done);
    BASE_TRY_GOTO(status, base_alloc(entries, sizeof *ranges, &ranges, error), done);
    json_object_foreach((json_t *)(uintptr_t)header, key, entry) {
        if (!strcmp(key, "__metadata__")) {
            BASE_TRY_GOTO(status, check_metadata(file, entry, error), done);
            continue;
        }
        size_t at = out->count;
        BASE_TRY_GOTO(
            status,
            read_tensor(file, key, entry, buffer_size, &out->tensors[at], &ranges[at], error),
            done);
        ranges[at].tensor = at;
        out->tensors[at].data = buffer + ranges[at].begin;
        out->count++;
    }
    BASE_TRY_GOTO(status, check_cover(file, out, ranges, buffer_size, error), done);
    BASE_TRY_GOTO(status, keep_names(out, error), done);
    if (out->count) qsort(out->tensors, out->count, sizeof *out->tensors, compare_tensors);
done:
    free(ranges);
    return status;
}

sifr_status formats_safetensors_parse(const void *data, size_t size, const char *name,
                                      formats_safetensors *out, sifr_error *error) {
    *out = (formats_safetensors){0};
    if (size < LENGTH_BYTES) {
        return base_fail(error, SIFR_FAILED,
                         "%s: %zu bytes are too few for a safetensors file: empty or cut short",
                         name, size);
    }
    const uint8_t *bytes = data;
    uint64_t length = 0, rest = size - LENGTH_BYTES;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) length = length << 8 | bytes[i];
    if (length > FORMATS_HEADER_LIMIT) {
        return base_fail(error, SIFR_FAILED,
                         "%s: a header of %llu bytes, more than the limit of %d: not a "
                         "safetensors file, or damaged",
                         name, (unsigned long long)length, FORMATS_HEADER_LIMIT);
    }
    if (length > rest) {
        return base_fail(error, SIFR_FAILED,
                         "%s: a header of %llu bytes in a file of %zu: cut short", name,
                         (unsigned long long)length, size);
    }
    const char *text = (const char *)bytes + LENGTH_BYTES;
    if (length == 0 || text[0] != '{') {
        return base_fail(error, SIFR_FAILED,
                         "%s: the header does not begin with '{': not a safetensors file", name);
    }
    json_t *header;
    sifr_status status = base_json_parse(text, (size_t)length, name, &header, error);
    if (status != SIFR_OK) {
        if (status == SIFR_USAGE) status = SIFR_FAILED;
        if (error) error->status = status;
        return status;
    }
    status = read_header(name, header, bytes + LENGTH_BYTES + length, rest - length, out, error);
    json_decref(header);
    if (status != SIFR_OK) formats_safetensors_close(out);
    return status;
}

sifr_status formats_safetensors_open(const char *path, formats_safetensors *out,
                                     sifr_error *error) {
    base_map map;
    *out = (formats_safetensors){0};
    BASE_TRY(base_map_file(path, &map, error));
    sifr_status status = formats_safetensors_parse(map.data, map.size, path, out, error);
    if (status != SIFR_OK) {
        base_unmap(&map);
        return status;
    }
    out->map = map;
    return SIFR_OK;
}

void formats_safetensors_close(formats_safetensors *file) {
    free(file->tensors);
    free(file->names);
    base_unmap(&file->map);
    *file = (formats_safetensors){0};
}

const formats_tensor *formats_safetensors_find(const formats_safetensors *file, const char *name) {
    formats_tensor key = {.name = name};
    if (!file->count) return NULL;
    return bsearch(&key, file->tensors, file->count, sizeof key, compare_tensors);
}

sifr_status formats_tensor_bytes(const formats_tensor_spec *spec, uint64_t *bytes,
                                 sifr_error *error) {
    int64_t elements;
    bool good = spec->rank >= 0 && spec->rank <= FORMATS_RANK_LIMIT && spec->dtype > BASE_NONE &&
                spec->dtype < BASE_DTYPES;
    for (int i = 0; good && i < spec->rank; i++) good = spec->shape[i] >= 0;
    if (good && shape_bytes(spec->rank, spec->shape, spec->dtype, &elements, bytes)) {
        return SIFR_OK;
    }
    return base_fail(error, SIFR_FAILED,
                     "tensor %.200s: its shape and dtype give no size that fits", spec->name);
}
