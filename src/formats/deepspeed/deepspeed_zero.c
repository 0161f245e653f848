/* Checkpoints of ZeRO: the masters of all ranks, put together by the shapes of the parameters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "formats/deepspeed/deepspeed_internal.h"

enum { RANK_LIMIT = 4096, GROUP_LIMIT = 4096 };

/* What the files of the ranks hold. */
typedef struct zero_reader {
    formats_deepspeed *c;
    formats_torch_tree *model;                 /* rank 0's model states */
    formats_torch_tree **optimizers, **models; /* by rank; models: stage 3's */
    formats_tensor *flat;                      /* rank r, group g: r * groups + g */
    size_t groups;
    sifr_error *error;
} zero_reader;

static sifr_status lacks(const formats_torch_tree *tree, const char *what, sifr_error *error) {
    return base_fail(error, SIFR_FAILED, "%s: has no %s: no file of a ZeRO checkpoint, or damaged",
                     formats_torch_tree_name(tree), what);
}

static sifr_status need(const formats_torch_tree *tree, formats_torch_node node, const char *key,
                        formats_torch_node *out, sifr_error *error) {
    return formats_torch_find(tree, node, key, out) ? SIFR_OK : lacks(tree, key, error);
}

/* The file of rank r whose name ends so. */
static const char *find_file(char **names, size_t count, size_t rank, const char *end) {
    char wanted[96];
    snprintf(wanted, sizeof wanted, "zero_pp_rank_%zu_mp_rank_00_%s", rank, end);
    for (size_t i = 0; i < count; i++) {
        const char *name = strncmp(names[i], "bf16_", 5) == 0   ? names[i] + 5
                           : strncmp(names[i], "fp16_", 5) == 0 ? names[i] + 5
                                                                : names[i];
        if (strcmp(name, wanted) == 0) return names[i];
    }
    return NULL;
}

static size_t count_files(char **names, size_t count, const char *end) {
    size_t found = 0, length = strlen(end);
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(names[i]);
        found += size > length && strcmp(names[i] + size - length, end) == 0;
    }
    return found;
}

/* --- shapes --- */

/* A torch.Size, or a list. */
static sifr_status read_shape(const formats_torch_tree *tree, formats_torch_node node, int *rank,
                              int64_t shape[FORMATS_RANK_LIMIT], sifr_error *error) {
    size_t count = formats_torch_count(tree, node);
    bool good =
        formats_torch_kind_of(tree, node) == FORMATS_TORCH_LIST && count <= FORMATS_RANK_LIMIT;
    for (size_t i = 0; good && i < count; i++) {
        formats_torch_node size = formats_torch_item(tree, node, i);
        good = formats_torch_kind_of(tree, size) == FORMATS_TORCH_INT;
        shape[i] = formats_torch_int(tree, size);
    }
    *rank = (int)count;
    return good ? SIFR_OK : lacks(tree, "shape where one was expected", error);
}

static sifr_status add_weight(const zero_reader *z, const formats_torch_tree *tree,
                              formats_torch_node shapes, size_t index) {
    int64_t shape[FORMATS_RANK_LIMIT];
    int rank;
    BASE_TRY(read_shape(tree, formats_torch_item(tree, shapes, index), &rank, shape, z->error));
    return formats_deepspeed_add(z->c, formats_torch_key(tree, shapes, index), rank, shape,
                                 formats_torch_tree_name(tree), z->error);
}

/* Elements first … first + count - 1 of a vector whose parts lie in flat[0], flat[step] … */
static sifr_status add_range(const zero_reader *z, const formats_tensor *flat, size_t step,
                             size_t parts, int64_t first, int64_t count) {
    for (size_t p = 0; p < parts && count > 0; p++) {
        const formats_tensor *part = &flat[p * step];
        if (first >= part->elements) {
            first -= part->elements;
            continue;
        }
        int64_t here = base_min_i64(count, part->elements - first);
        BASE_TRY(formats_deepspeed_add_piece(z->c, part, first, here, z->error));
        count -= here;
        first = 0;
    }
    return SIFR_OK; /* what lacks is seen when all are there */
}

/* --- stages 1 and 2: each group end to end --- */

static sifr_status read_groups(const zero_reader *z, formats_torch_node list) {
    const formats_torch_tree *tree = z->model;
    if (formats_torch_count(tree, list) != z->groups)
        return lacks(tree, "shapes of as many groups as there are masters", z->error);
    for (size_t g = 0; g < z->groups; g++) {
        formats_torch_node shapes = formats_torch_item(tree, list, g);
        int64_t at = 0;
        if (formats_torch_kind_of(tree, shapes) != FORMATS_TORCH_DICT)
            return lacks(tree, "names of a group's parameters", z->error);
        for (size_t i = 0; i < formats_torch_count(tree, shapes); i++) {
            BASE_TRY(add_weight(z, tree, shapes, i));
            int64_t elements = z->c->weights[z->c->count - 1].elements;
            BASE_TRY(add_range(z, &z->flat[g], z->groups, z->c->ranks, at, elements));
            if (!base_add_i64(at, elements, &at)) return lacks(tree, "sizes that fit", z->error);
        }
    }
    return SIFR_OK;
}

/* --- stage 3: each weight cut in as many parts as there are ranks, padded at its end --- */

static sifr_status read_parts(const zero_reader *z, formats_torch_node list) {
    const formats_torch_tree *tree = z->model;
    int64_t at = 0, ranks = (int64_t)z->c->ranks;
    for (size_t g = 0; g < formats_torch_count(tree, list); g++) {
        formats_torch_node shapes = formats_torch_item(tree, list, g);
        if (formats_torch_kind_of(tree, shapes) != FORMATS_TORCH_DICT)
            return lacks(tree, "names of a group's parameters", z->error);
        for (size_t i = 0; i < formats_torch_count(tree, shapes); i++) {
            BASE_TRY(add_weight(z, tree, shapes, i));
            int64_t elements = z->c->weights[z->c->count - 1].elements;
            int64_t part = elements / ranks + (elements % ranks != 0);
            for (int64_t r = 0; r < ranks; r++) {
                int64_t left = base_max_i64(elements - r * part, 0);
                BASE_TRY(add_range(z, &z->flat[(size_t)r * z->groups], 1, z->groups, at,
                                   base_min_i64(part, left)));
            }
            if (!base_add_i64(at, part, &at)) return lacks(tree, "sizes that fit", z->error);
        }
    }
    return SIFR_OK;
}

/* --- frozen weights --- */

/* In stage 3 each rank's file has a part of each, like the masters; else rank 0's has all. */
static sifr_status read_frozen(const zero_reader *z) {
    formats_torch_node shapes, fragments, fragment;
    formats_deepspeed *c = z->c;
    const formats_torch_tree *tree = z->model;
    if (!formats_torch_find(tree, formats_torch_root(tree), "frozen_param_shapes", &shapes))
        return SIFR_OK;
    size_t ranks = c->stage == 3 ? c->ranks : 1;
    for (size_t i = 0; i < formats_torch_count(tree, shapes); i++) {
        BASE_TRY(add_weight(z, tree, shapes, i));
        formats_deepspeed_weight *w = &c->weights[c->count - 1];
        w->frozen = true;
        int64_t left = w->elements;
        for (size_t r = 0; r < ranks && left > 0; r++) {
            const formats_torch_tree *from = c->stage == 3 ? z->models[r] : z->model;
            formats_tensor tensor;
            BASE_TRY(need(from, formats_torch_root(from), "frozen_param_fragments", &fragments,
                          z->error));
            BASE_TRY(need(from, fragments, c->weights[c->count - 1].name, &fragment, z->error));
            BASE_TRY(formats_deepspeed_tensor(from, fragment, &tensor, z->error));
            int64_t here = base_min_i64(left, tensor.elements);
            BASE_TRY(formats_deepspeed_add_piece(c, &tensor, 0, here, z->error));
            left -= here;
        }
    }
    return SIFR_OK;
}

/* --- the ranks' files --- */

/* A list of tensors of one rank, or one tensor. */
static sifr_status read_flat(zero_reader *z, size_t rank, const formats_torch_tree *tree,
                             formats_torch_node list) {
    bool one = formats_torch_kind_of(tree, list) == FORMATS_TORCH_TENSOR;
    size_t groups = one ? 1 : formats_torch_count(tree, list);
    if (groups == 0 || groups > GROUP_LIMIT || (rank > 0 && groups != z->groups))
        return lacks(tree, "masters of as many groups as the other ranks", z->error);
    z->groups = groups;
    if (!z->flat) BASE_TRY(base_alloc(z->c->ranks * groups, sizeof *z->flat, &z->flat, z->error));
    for (size_t g = 0; g < groups; g++) {
        formats_torch_node node = one ? list : formats_torch_item(tree, list, g);
        BASE_TRY(formats_deepspeed_tensor(tree, node, &z->flat[rank * groups + g], z->error));
    }
    return SIFR_OK;
}

static int64_t largest(const formats_torch_tree *tree, formats_torch_node node) {
    int64_t most = formats_torch_int(tree, node);
    if (formats_torch_kind_of(tree, node) != FORMATS_TORCH_LIST) return most;
    for (size_t i = 0; i < formats_torch_count(tree, node); i++)
        most = base_max_i64(most, formats_torch_int(tree, formats_torch_item(tree, node, i)));
    return most;
}

static sifr_status read_rank(zero_reader *z, size_t rank) {
    const formats_torch_tree *tree = z->optimizers[rank];
    formats_torch_node state, stage, parts, flat;
    BASE_TRY(need(tree, formats_torch_root(tree), "optimizer_state_dict", &state, z->error));
    BASE_TRY(need(tree, state, "zero_stage", &stage, z->error));
    BASE_TRY(need(tree, state, "partition_count", &parts, z->error));
    int64_t number = largest(tree, stage);
    if (number < 1 || number > 3 || (rank > 0 && number != z->c->stage))
        return lacks(tree, "ZeRO stage of 1 to 3 as the other ranks", z->error);
    z->c->stage = (int)number;
    if (largest(tree, parts) != (int64_t)z->c->ranks)
        return base_fail(z->error, SIFR_FAILED,
                         "%s: saved by %lld ranks, but there are the files of %zu; some are "
                         "missing, or lie there from an older run",
                         formats_torch_tree_name(tree), (long long)largest(tree, parts),
                         z->c->ranks);
    BASE_TRY(need(tree, state, number == 3 ? "fp32_flat_groups" : "single_partition_of_fp32_groups",
                  &flat, z->error));
    return read_flat(z, rank, tree, flat);
}

static sifr_status open_ranks(zero_reader *z, char **names, size_t count) {
    formats_deepspeed *c = z->c;
    BASE_TRY(base_alloc(c->ranks, sizeof *z->optimizers, &z->optimizers, z->error));
    BASE_TRY(base_alloc(c->ranks, sizeof *z->models, &z->models, z->error));
    for (size_t r = 0; r < c->ranks; r++) {
        const char *file = find_file(names, count, r, "optim_states.pt");
        if (!file)
            return base_fail(z->error, SIFR_FAILED,
                             "%s: the file of rank %zu (zero_pp_rank_%zu_mp_rank_00_optim_states"
                             ".pt) is missing",
                             c->folder, r, r);
        BASE_TRY(formats_deepspeed_tree(c, file, &z->optimizers[r], z->error));
        BASE_TRY(read_rank(z, r));
        if (c->stage != 3) continue;
        file = find_file(names, count, r, "model_states.pt");
        if (!file)
            return base_fail(z->error, SIFR_FAILED,
                             "%s: the file of rank %zu (zero_pp_rank_%zu_mp_rank_00_model_states"
                             ".pt) is missing",
                             c->folder, r, r);
        BASE_TRY(formats_deepspeed_tree(c, file, &z->models[r], z->error));
    }
    return SIFR_OK;
}

/* Without ZeRO the weights are those of the module, in the type of the run. */
static sifr_status read_module(const zero_reader *z) {
    formats_torch_node module;
    const formats_torch_tree *tree = z->model;
    BASE_TRY(need(tree, formats_torch_root(tree), "module", &module, z->error));
    for (size_t i = 0; i < formats_torch_count(tree, module); i++) {
        formats_tensor tensor;
        formats_torch_node node = formats_torch_item(tree, module, i);
        if (formats_torch_kind_of(tree, node) != FORMATS_TORCH_TENSOR ||
            formats_deepspeed_shared(tree, formats_torch_key(tree, module, i)))
            continue;
        BASE_TRY(formats_torch_tensor(tree, node, &tensor, z->error));
        if (tensor.dtype == BASE_INT64 || tensor.dtype == BASE_BOOL) continue; /* buffers */
        BASE_TRY(formats_deepspeed_tensor(tree, node, &tensor, z->error));
        BASE_TRY(formats_deepspeed_add(z->c, formats_torch_key(tree, module, i), tensor.rank,
                                       tensor.shape, formats_torch_tree_name(tree), z->error));
        BASE_TRY(formats_deepspeed_add_piece(z->c, &tensor, 0, tensor.elements, z->error));
    }
    return SIFR_OK;
}

static sifr_status read_all(zero_reader *z, char **names, size_t count) {
    formats_deepspeed *c = z->c;
    formats_torch_node node;
    c->ranks = count_files(names, count, "_optim_states.pt");
    if (c->ranks > RANK_LIMIT)
        return base_fail(z->error, SIFR_FAILED, "%s: files of more than %d ranks", c->folder,
                         RANK_LIMIT);
    if (c->ranks) BASE_TRY(open_ranks(z, names, count));
    if (c->stage == 3)
        z->model = z->models[0];
    else
        BASE_TRY(formats_deepspeed_tree(c, "mp_rank_00_model_states.pt", &z->model, z->error));
    if (formats_torch_find(z->model, formats_torch_root(z->model), "global_steps", &node))
        c->step = formats_torch_int(z->model, node);
    if (!c->ranks) {
        c->ranks = 1;
        return read_module(z);
    }
    BASE_TRY(need(z->model, formats_torch_root(z->model), "param_shapes", &node, z->error));
    if (formats_torch_kind_of(z->model, node) != FORMATS_TORCH_LIST)
        return lacks(z->model, "list param_shapes", z->error);
    BASE_TRY(c->stage == 3 ? read_parts(z, node) : read_groups(z, node));
    return read_frozen(z);
}

sifr_status formats_deepspeed_zero(formats_deepspeed *c, char **names, size_t count,
                                   sifr_error *error) {
    zero_reader z = {.c = c, .error = error};
    sifr_status status = read_all(&z, names, count);
    free(z.optimizers);
    free(z.models);
    free(z.flat);
    return status;
}
