/* A universal checkpoint: zero/NAME/fp32.pt holds {"param": tensor}, whole. */
#include <stdio.h>
#include <string.h>

#include "formats/deepspeed/deepspeed_internal.h"

static sifr_status add_weight(formats_deepspeed *c, const char *name, sifr_error *error) {
    char file[BASE_PATH_LENGTH];
    formats_torch_tree *tree;
    formats_torch_node node;
    formats_tensor tensor;
    if (snprintf(file, sizeof file, "zero/%s/fp32.pt", name) >= (int)sizeof file)
        return base_fail(error, SIFR_FAILED, "%s: the name %.60s is too long", c->folder, name);
    BASE_TRY(formats_deepspeed_tree(c, file, &tree, error));
    if (!formats_torch_find(tree, formats_torch_root(tree), "param", &node))
        return base_fail(error, SIFR_FAILED, "%s: has no \"param\"", formats_torch_tree_name(tree));
    BASE_TRY(formats_deepspeed_tensor(tree, node, &tensor, error));
    formats_pickle_text text = {name, strlen(name)};
    BASE_TRY(formats_deepspeed_add(c, text, tensor.rank, tensor.shape,
                                   formats_torch_tree_name(tree), error));
    return formats_deepspeed_add_piece(c, &tensor, 0, tensor.elements, error);
}

sifr_status formats_deepspeed_universal(formats_deepspeed *c, sifr_error *error) {
    char zero[BASE_PATH_LENGTH], path[BASE_PATH_LENGTH], **names;
    size_t count;
    formats_torch_tree *model = NULL;
    formats_torch_node step;
    static const char states[] = "mp_rank_00_model_states.pt";
    c->stage = -1;
    BASE_TRY(base_path_join(path, c->folder, states, error));
    if (base_is_file(path)) BASE_TRY(formats_deepspeed_tree(c, states, &model, error));
    if (model && formats_torch_find(model, formats_torch_root(model), "global_steps", &step))
        c->step = formats_torch_int(model, step);
    BASE_TRY(base_path_join(zero, c->folder, "zero", error));
    BASE_TRY(base_list_directory(zero, &names, &count, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        status = base_path_join(path, zero, names[i], error);
        if (status != SIFR_OK || !base_is_directory(path)) continue;
        formats_pickle_text name = {names[i], strlen(names[i])};
        if (model && formats_deepspeed_shared(model, name)) continue;
        status = add_weight(c, names[i], error);
    }
    base_free_names(names, count);
    return status;
}
