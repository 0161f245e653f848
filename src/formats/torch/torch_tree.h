/* A file of torch.save that holds more than a dict of tensors: lists, dicts in dicts, numbers, and
 * objects of classes that are not known here. Those are passed over: nothing of them is made, and
 * nothing is run. Mapped; only what is asked for is looked at. */
#ifndef FORMATS_TORCH_TREE_H
#define FORMATS_TORCH_TREE_H

#include <stdbool.h>

#include "formats/safetensors/safetensors.h"
#include "formats/torch/torch_pickle.h"

typedef struct formats_torch_tree formats_torch_tree;
typedef uint32_t formats_torch_node; /* of the tree that it came from */

typedef enum formats_torch_kind {
    FORMATS_TORCH_OTHER,
    FORMATS_TORCH_INT,
    FORMATS_TORCH_TEXT,
    FORMATS_TORCH_LIST, /* or a tuple */
    FORMATS_TORCH_DICT,
    FORMATS_TORCH_TENSOR
} formats_torch_kind;

/* SIFR_FAILED for whatever is wrong in the bytes. */
sifr_status formats_torch_tree_open(const char *path, formats_torch_tree **out,
                                    sifr_error *error) SIFR_MUST_CHECK;
/* The same from memory, which is borrowed; `name` begins the messages. */
sifr_status formats_torch_tree_parse(const void *data, size_t size, const char *name,
                                     formats_torch_tree **out, sifr_error *error) SIFR_MUST_CHECK;
void formats_torch_tree_close(formats_torch_tree *tree); /* NULL is harmless */
const char *formats_torch_tree_name(const formats_torch_tree *tree);

formats_torch_node formats_torch_root(const formats_torch_tree *tree);
formats_torch_kind formats_torch_kind_of(const formats_torch_tree *tree, formats_torch_node node);

/* Elements of a list, or keys of a dict; 0 for other kinds. */
size_t formats_torch_count(const formats_torch_tree *tree, formats_torch_node node);
/* Element of a list, or value of a dict. */
formats_torch_node formats_torch_item(const formats_torch_tree *tree, formats_torch_node node,
                                      size_t index);
/* A dict's key if it is a string; for other keys, and for objects that are no dict, `at` is NULL.
 */
formats_pickle_text formats_torch_key(const formats_torch_tree *tree, formats_torch_node node,
                                      size_t index);
/* The value of a key; false where the node is no dict or lacks it. */
bool formats_torch_find(const formats_torch_tree *tree, formats_torch_node node, const char *key,
                        formats_torch_node *out);

int64_t formats_torch_int(const formats_torch_tree *tree, formats_torch_node node);
formats_pickle_text formats_torch_text(const formats_torch_tree *tree, formats_torch_node node);

/* A tensor, whose bytes lie in the file; its name is NULL. SIFR_FAILED for one that is not
 * row-major or does not lie in its storage. */
sifr_status formats_torch_tensor(const formats_torch_tree *tree, formats_torch_node node,
                                 formats_tensor *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
