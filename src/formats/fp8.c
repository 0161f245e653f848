#include "formats/fp8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/half.h"
#include "base/heap.h"
#include "base/json.h"

enum { CONFIG_FILE_LIMIT = 16 << 20, BLOCK_LIMIT = 1 << 20 };

static const char key[] = "quantization_config";

/* --- config.json --- */

static const char *method_of(const json_t *quantization) {
    const char *method = json_string_value(json_object_get(quantization, "quant_method"));
    return method ? method : "";
}

bool formats_fp8_is(const json_t *quantization) {
    return strcmp(method_of(quantization), "fp8") == 0;
}

static sifr_status refuse_method(const json_t *quantization, const char *name, sifr_error *error) {
    const char *method = method_of(quantization);
    return base_fail(error, SIFR_USAGE,
                     "%s: %s: weights that are quantised by %s%.60s%s are not read (supported: "
                     "fp8); train from a folder of the same model in BF16, and let "
                     "sifr.quantization make 4-bit codes of it",
                     name, key, *method ? "\"" : "", *method ? method : "a method without a name",
                     *method ? "\"" : "");
}

static sifr_status read_block(const json_t *list, const char *name, formats_fp8 *out,
                              sifr_error *error) {
    int64_t *sides[] = {&out->rows, &out->columns};
    bool whole = json_array_size(list) == 2;
    for (size_t i = 0; i < 2 && whole; i++) {
        const json_t *side = json_array_get(list, i);
        *sides[i] = json_integer_value(side);
        whole = json_is_integer(side) && *sides[i] > 0 && *sides[i] <= BLOCK_LIMIT;
    }
    if (whole) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: %s.weight_block_size must be null or two whole numbers from 1 to %d, as "
                     "[128, 128]",
                     name, key, BLOCK_LIMIT);
}

/* Which layers are plain shows in their tensors' types, and what belongs to activations of 8 bits
 * is of no use here: keys that say so are not read. */
sifr_status formats_fp8_read(const json_t *quantization, const char *name, formats_fp8 *out,
                             sifr_error *error) {
    *out = (formats_fp8){128, 128};
    if (!json_is_object(quantization))
        return base_fail(error, SIFR_USAGE, "%s: %s must be an object", name, key);
    if (!formats_fp8_is(quantization)) return refuse_method(quantization, name, error);
    const json_t *block = json_object_get(quantization, "weight_block_size");
    const char *type = json_string_value(json_object_get(quantization, "fmt"));
    if (type && strcmp(type, "e4m3") != 0)
        return base_fail(error, SIFR_USAGE,
                         "%s: %s.fmt \"%.20s\" is not supported (supported: e4m3)", name, key,
                         type);
    if (json_is_null(block)) *out = (formats_fp8){0, 0};
    return block && !json_is_null(block) ? read_block(block, name, out, error) : SIFR_OK;
}

/* --- scales --- */

static int compare_names(const void *a, const void *b) {
    return strcmp((*(const formats_tensor *const *)a)->name,
                  (*(const formats_tensor *const *)b)->name);
}

/* The tensor STEM + ENDING, where STEM is `name` without its last `cut` bytes. */
static formats_tensor *find(const formats_tensor **tensors, size_t count, const char *name,
                            size_t cut, const char *ending) {
    char wanted[FORMATS_NAME_LIMIT + 32];
    const formats_tensor key_tensor = {.name = wanted}, *at = &key_tensor;
    snprintf(wanted, sizeof wanted, "%.*s%s", (int)(strlen(name) - cut), name, ending);
    const formats_tensor **found = bsearch(&at, tensors, count, sizeof *tensors, compare_names);
    return found ? (formats_tensor *)(uintptr_t)*found : NULL;
}

static sifr_status wrong_shape(const formats_tensor *tensor, const formats_tensor *scales,
                               const formats_fp8 *fp8, sifr_error *error) {
    char block[64] = "the whole of it";
    if (fp8->rows)
        snprintf(block, sizeof block, "each block of %lld x %lld", (long long)fp8->rows,
                 (long long)fp8->columns);
    return base_fail(error, SIFR_FAILED,
                     "tensor %.200s: its shape has not one number for %s of %.200s, as %s of "
                     "config.json says",
                     scales->name, block, tensor->name, key);
}

static int64_t blocks(int64_t elements, int64_t block) {
    return (elements + block - 1) / block;
}

static sifr_status take_scales(const formats_tensor *tensor, const formats_tensor *scales,
                               const formats_fp8 *fp8, formats_scales *out, sifr_error *error) {
    if (tensor->rank != 2)
        return base_fail(error, SIFR_FAILED,
                         "tensor %.200s: it is F8_E4M3 with scales and has %d dimensions: such are "
                         "not read (supported: matrices)",
                         tensor->name, tensor->rank);
    if (scales->dtype > BASE_FP16)
        return base_fail(
            error, SIFR_FAILED,
            "tensor %.200s: scales of type %s are not read (supported: F32, BF16, F16)",
            scales->name, formats_dtype_name(scales->dtype));
    *out = (formats_scales){scales, tensor->shape[0], tensor->shape[1], 1};
    if (scales->rank == 0 || (scales->rank == 1 && scales->shape[0] == 1)) return SIFR_OK;
    if (!fp8->rows || scales->rank != 2 ||
        scales->shape[0] != blocks(tensor->shape[0], fp8->rows) ||
        scales->shape[1] != blocks(tensor->shape[1], fp8->columns))
        return wrong_shape(tensor, scales, fp8, error);
    *out = (formats_scales){scales, fp8->rows, fp8->columns, scales->shape[1]};
    return SIFR_OK;
}

static sifr_status bind(const formats_tensor **tensors, size_t count, size_t at,
                        const formats_fp8 *fp8, formats_scales *out, sifr_error *error) {
    static const char weight[] = "weight";
    static const char *const activations[] = {"activation_scale", "input_scale"};
    formats_tensor *tensor = (formats_tensor *)(uintptr_t)tensors[at];
    size_t length = strlen(tensor->name), cut = sizeof weight - 1;
    formats_tensor *scales = find(tensors, count, tensor->name, 0, "_scale_inv");
    if (!scales) scales = find(tensors, count, tensor->name, 0, "_scale");
    if (!scales)
        return base_fail(error, SIFR_FAILED,
                         "tensor %.200s: it is F8_E4M3, and its scales, %.200s_scale_inv, are "
                         "missing: is the folder whole?",
                         tensor->name, tensor->name);
    BASE_TRY(take_scales(tensor, scales, fp8, out, error));
    tensor->scales = out;
    scales->of_another = true;
    if (length < cut || strcmp(tensor->name + length - cut, weight) != 0) return SIFR_OK;
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        formats_tensor *other = find(tensors, count, tensor->name, cut, activations[i]);
        if (other) other->of_another = true;
    }
    return SIFR_OK;
}

static sifr_status bind_all(const formats_tensor **tensors, size_t count, const formats_fp8 *fp8,
                            formats_scales **out, sifr_error *error) {
    size_t matrices = 0, used = 0;
    for (size_t i = 0; i < count; i++) matrices += tensors[i]->dtype == BASE_FP8_E4M3;
    if (!matrices) return SIFR_OK;
    BASE_TRY(base_alloc(matrices, sizeof **out, out, error));
    for (size_t i = 0; i < count; i++)
        if (tensors[i]->dtype == BASE_FP8_E4M3)
            BASE_TRY(bind(tensors, count, i, fp8, *out + used++, error));
    return SIFR_OK;
}

/* Without a config.json, or of another method, nothing is bound: who reads the config refuses. */
sifr_status formats_fp8_bind(const char *directory, const formats_tensor **tensors, size_t count,
                             formats_scales **out, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    json_t *config = NULL;
    formats_fp8 fp8;
    *out = NULL;
    BASE_TRY(base_path_join(path, directory, "config.json", error));
    if (!base_is_file(path)) return SIFR_OK;
    if (base_json_load(path, CONFIG_FILE_LIMIT, &config, NULL) != SIFR_OK) return SIFR_OK;
    const json_t *quantization = json_object_get(config, key);
    sifr_status status = SIFR_OK;
    if (formats_fp8_is(quantization)) {
        status = formats_fp8_read(quantization, path, &fp8, error);
        if (status == SIFR_OK) status = bind_all(tensors, count, &fp8, out, error);
    }
    json_decref(config);
    if (status != SIFR_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

/* --- values --- */

float formats_fp8_number(uint8_t byte) {
    int exponent = byte >> 3 & 15, fraction = byte & 7;
    float value =
        exponent ? base_float_from_bits((uint32_t)(exponent + 120) << 23 | (uint32_t)fraction << 20)
                 : (float)fraction * 0x1p-9f;
    if ((byte & 0x7f) == 0x7f) value = NAN; /* there are no infinities */
    return byte & 0x80 ? -value : value;
}

static float scale_at(const formats_tensor *scales, int64_t at) {
    uint16_t half;
    float value;
    if (scales->dtype == BASE_FP32) {
        memcpy(&value, (const char *)scales->data + at * 4, sizeof value);
        return value;
    }
    memcpy(&half, (const char *)scales->data + at * 2, sizeof half);
    return scales->dtype == BASE_BF16 ? base_bf16_to_float(half) : base_half_to_float(half);
}

void formats_fp8_values(const formats_tensor *tensor, int64_t first, int64_t count, float *values) {
    const formats_scales *s = tensor->scales;
    const uint8_t *data = tensor->data;
    int64_t columns = tensor->shape[1], end = first + count;
    base_assert(first >= 0 && end <= tensor->elements);
    for (int64_t at = first; at < end;) {
        int64_t row = at / columns, column = at % columns, block = column / s->columns;
        int64_t stop = row * columns + (block + 1) * s->columns;
        if (stop > (row + 1) * columns) stop = (row + 1) * columns;
        if (stop > end) stop = end;
        float scale = scale_at(s->values, row / s->rows * s->across + block);
        for (; at < stop; at++)
            values[at - first] =
                base_bf16_to_float(base_bf16_from_float(formats_fp8_number(data[at]) * scale));
    }
}
