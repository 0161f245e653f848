/* What the two forms of checkpoints are read into: files that stay open, weights and their pieces.
 */
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "formats/deepspeed/deepspeed_internal.h"

enum { WEIGHT_LIMIT = FORMATS_TENSOR_LIMIT };

sifr_status formats_deepspeed_tree(formats_deepspeed *c, const char *name, formats_torch_tree **out,
                                   sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    BASE_TRY(base_path_join(path, c->folder, name, error));
    BASE_TRY(base_grow(&c->trees, &c->tree_capacity, c->tree_count + 1, sizeof *c->trees, error));
    BASE_TRY(formats_torch_tree_open(path, out, error));
    c->trees[c->tree_count++] = *out;
    return SIFR_OK;
}

static bool good_name(formats_pickle_text name) {
    if (!name.at || name.length == 0 || name.length > FORMATS_NAME_LIMIT) return false;
    for (size_t i = 0; i < name.length; i++)
        if ((unsigned char)name.at[i] < 0x20 || name.at[i] == 0x7f) return false;
    return true;
}

sifr_status formats_deepspeed_add(formats_deepspeed *c, formats_pickle_text name, int rank,
                                  const int64_t *shape, const char *file, sifr_error *error) {
    formats_deepspeed_weight weight = {.rank = rank, .elements = 1, .first_piece = c->piece_count};
    bool good = good_name(name) && rank >= 0 && rank <= FORMATS_RANK_LIMIT;
    for (int i = 0; good && i < rank; i++) {
        weight.shape[i] = shape[i];
        good = shape[i] >= 0 && base_mul_i64(weight.elements, shape[i], &weight.elements);
    }
    if (!good || weight.elements > INT64_MAX / 8)
        return base_fail(error, SIFR_FAILED, "%s: a parameter has a name or shape that is none",
                         file);
    if (c->count == WEIGHT_LIMIT)
        return base_fail(error, SIFR_FAILED, "%s: more than %d parameters", file, WEIGHT_LIMIT);
    BASE_TRY(base_grow(&c->weights, &c->capacity, c->count + 1, sizeof *c->weights, error));
    char *copy;
    BASE_TRY(base_copy_text(name.at, name.length, &copy, error));
    weight.name = copy;
    c->weights[c->count++] = weight;
    return SIFR_OK;
}

sifr_status formats_deepspeed_add_piece(formats_deepspeed *c, const formats_tensor *tensor,
                                        int64_t first, int64_t count, sifr_error *error) {
    if (count == 0) return SIFR_OK;
    BASE_TRY(
        base_grow(&c->pieces, &c->piece_capacity, c->piece_count + 1, sizeof *c->pieces, error));
    c->pieces[c->piece_count++] = (deepspeed_piece){.data = (const uint8_t *)tensor->data +
                                                            first * base_dtype_bytes(tensor->dtype),
                                                    .dtype = tensor->dtype,
                                                    .count = count};
    c->weights[c->count - 1].pieces++;
    return SIFR_OK;
}

sifr_status formats_deepspeed_tensor(const formats_torch_tree *tree, formats_torch_node node,
                                     formats_tensor *out, sifr_error *error) {
    BASE_TRY(formats_torch_tensor(tree, node, out, error));
    if (out->dtype == BASE_FP32 || out->dtype == BASE_BF16 || out->dtype == BASE_FP16)
        return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: weights of type %s are not supported (supported: F32, BF16, F16)",
                     formats_torch_tree_name(tree), formats_dtype_name(out->dtype));
}

bool formats_deepspeed_shared(const formats_torch_tree *model, formats_pickle_text name) {
    formats_torch_node shared;
    if (!formats_torch_find(model, formats_torch_root(model), "shared_params", &shared))
        return false;
    if (formats_torch_kind_of(model, shared) != FORMATS_TORCH_DICT) return false;
    for (size_t i = 0; i < formats_torch_count(model, shared); i++) {
        formats_pickle_text other = formats_torch_key(model, shared, i);
        if (name.at && other.at && other.length == name.length &&
            memcmp(other.at, name.at, name.length) == 0)
            return true;
    }
    return false;
}
