#include "formats/torch/torch_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "formats/torch/torch_file_internal.h"
#include "formats/torch/torch_pickle_internal.h"

struct formats_torch_tree {
    char *name;
    torch_reader reader;
    pickle_machine machine;
    base_map map;
};

static sifr_status read_tree(formats_torch_tree *t, const void *data, size_t size,
                             sifr_error *error) {
    const formats_zip_entry *pickle;
    t->reader = (torch_reader){.name = t->name, .size = size};
    BASE_TRY(formats_torch_check_form(data, size, t->name, error));
    BASE_TRY(formats_zip_parse(data, size, t->name, &t->reader.zip, error));
    BASE_TRY(formats_torch_find_pickle(&t->reader, &pickle, error));
    if (pickle->size > FORMATS_PICKLE_LIMIT)
        return base_fail(error, SIFR_FAILED,
                         "%s: a pickle of %llu bytes, more than the limit of %d", t->name,
                         (unsigned long long)pickle->size, FORMATS_PICKLE_LIMIT);
    t->machine = (pickle_machine){
        .data = pickle->data, .size = (size_t)pickle->size, .name = t->name, .lenient = true};
    return formats_pickle_run(&t->machine, error);
}

sifr_status formats_torch_tree_parse(const void *data, size_t size, const char *name,
                                     formats_torch_tree **out, sifr_error *error) {
    formats_torch_tree *t;
    *out = NULL;
    BASE_TRY(base_alloc(1, sizeof *t, &t, error));
    sifr_status status = base_copy_text(name, strlen(name), &t->name, error);
    if (status == SIFR_OK) status = read_tree(t, data, size, error);
    if (status == SIFR_OK)
        *out = t;
    else
        formats_torch_tree_close(t);
    return status;
}

sifr_status formats_torch_tree_open(const char *path, formats_torch_tree **out, sifr_error *error) {
    base_map map;
    *out = NULL;
    BASE_TRY(base_map_file(path, &map, error));
    sifr_status status = formats_torch_tree_parse(map.data, map.size, path, out, error);
    if (status == SIFR_OK)
        (*out)->map = map;
    else
        base_unmap(&map);
    return status;
}

void formats_torch_tree_close(formats_torch_tree *tree) {
    if (!tree) return;
    formats_pickle_machine_free(&tree->machine);
    formats_zip_free(&tree->reader.zip);
    base_unmap(&tree->map);
    free(tree->name);
    free(tree);
}

const char *formats_torch_tree_name(const formats_torch_tree *tree) {
    return tree->name;
}

static const pickle_object *at(const formats_torch_tree *tree, formats_torch_node node) {
    return &tree->machine.objects[node];
}

formats_torch_node formats_torch_root(const formats_torch_tree *tree) {
    return tree->machine.stack.at[0];
}

formats_torch_kind formats_torch_kind_of(const formats_torch_tree *tree, formats_torch_node node) {
    switch (at(tree, node)->kind) {
    case PICKLE_INT:
    case PICKLE_BOOL:
        return FORMATS_TORCH_INT;
    case PICKLE_TEXT:
        return FORMATS_TORCH_TEXT;
    case PICKLE_TUPLE:
    case PICKLE_LIST:
        return FORMATS_TORCH_LIST;
    case PICKLE_DICT:
        return FORMATS_TORCH_DICT;
    case PICKLE_VIEW:
        return FORMATS_TORCH_TENSOR;
    default:
        return FORMATS_TORCH_OTHER;
    }
}

size_t formats_torch_count(const formats_torch_tree *tree, formats_torch_node node) {
    formats_torch_kind kind = formats_torch_kind_of(tree, node);
    if (kind == FORMATS_TORCH_DICT) return at(tree, node)->items.count / 2;
    return kind == FORMATS_TORCH_LIST ? at(tree, node)->items.count : 0;
}

formats_torch_node formats_torch_item(const formats_torch_tree *tree, formats_torch_node node,
                                      size_t index) {
    const pickle_object *object = at(tree, node);
    return object->items.at[object->kind == PICKLE_DICT ? 2 * index + 1 : index];
}

formats_pickle_text formats_torch_key(const formats_torch_tree *tree, formats_torch_node node,
                                      size_t index) {
    if (formats_torch_kind_of(tree, node) != FORMATS_TORCH_DICT) return (formats_pickle_text){0};
    return formats_torch_text(tree, at(tree, node)->items.at[2 * index]);
}

bool formats_torch_find(const formats_torch_tree *tree, formats_torch_node node, const char *key,
                        formats_torch_node *out) {
    size_t length = strlen(key);
    if (formats_torch_kind_of(tree, node) != FORMATS_TORCH_DICT) return false;
    for (size_t i = formats_torch_count(tree, node); i-- > 0;) { /* the last one counts */
        formats_pickle_text text = formats_torch_key(tree, node, i);
        if (!text.at || text.length != length || memcmp(text.at, key, length) != 0) continue;
        *out = formats_torch_item(tree, node, i);
        return true;
    }
    return false;
}

int64_t formats_torch_int(const formats_torch_tree *tree, formats_torch_node node) {
    return formats_torch_kind_of(tree, node) == FORMATS_TORCH_INT ? at(tree, node)->integer : 0;
}

formats_pickle_text formats_torch_text(const formats_torch_tree *tree, formats_torch_node node) {
    const pickle_object *object = at(tree, node);
    return object->kind == PICKLE_TEXT ? object->text : (formats_pickle_text){0};
}

sifr_status formats_torch_tensor(const formats_torch_tree *tree, formats_torch_node node,
                                 formats_tensor *out, sifr_error *error) {
    uint64_t copy;
    const pickle_object *object = at(tree, node);
    if (object->kind != PICKLE_VIEW)
        return base_fail(error, SIFR_FAILED, "%s: %s where a tensor was expected", tree->name,
                         formats_pickle_kind_name(object->kind));
    const formats_torch_view *view = &tree->machine.views[object->integer];
    BASE_TRY(formats_torch_read_view(&tree->reader, view, out, &copy, error));
    out->name = NULL;
    if (!copy) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: a tensor in transposed order, which is not supported here", tree->name);
}
