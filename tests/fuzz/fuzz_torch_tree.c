/* Files of torch.save with objects of any kind, on any bytes: no crash, one line of message, and
 * every tensor that is named lies in the file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/torch/torch_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

static void visit(const formats_torch_tree *tree, formats_torch_node node, int depth,
                  const uint8_t *data, size_t size) {
    sifr_error error = {0};
    formats_tensor tensor;
    if (formats_torch_kind_of(tree, node) == FORMATS_TORCH_TENSOR &&
        formats_torch_tensor(tree, node, &tensor, &error) == SIFR_OK && tensor.bytes) {
        const uint8_t *begin = tensor.data;
        must(begin >= data && tensor.bytes <= size &&
             (size_t)(begin - data) <= size - (size_t)tensor.bytes);
    }
    if (depth == 4) return;
    for (size_t i = 0; i < formats_torch_count(tree, node) && i < 16; i++) {
        formats_pickle_text key = formats_torch_key(tree, node, i);
        must(!key.at || formats_torch_kind_of(tree, node) == FORMATS_TORCH_DICT);
        visit(tree, formats_torch_item(tree, node, i), depth + 1, data, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    formats_torch_tree *tree;
    formats_torch_node node;
    sifr_error error = {0};
    sifr_status status = formats_torch_tree_parse(data, size, "input", &tree, &error);
    must(status == SIFR_OK || (error.message[0] && !strchr(error.message, '\n')));
    if (status != SIFR_OK) return 0;
    visit(tree, formats_torch_root(tree), 0, data, size);
    formats_torch_find(tree, formats_torch_root(tree), "optimizer_state_dict", &node);
    formats_torch_tree_close(tree);
    return 0;
}
