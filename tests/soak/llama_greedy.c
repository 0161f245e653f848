/* llama.cpp continues a text by its most likely tokens: llama_greedy MODEL COUNT TEXT. Prints the
 * ids of the text, then those of the new tokens, a line each. Built by test_soak_llama_cpp.sh. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama.h"

enum { MOST = 256 };

static int fail(const char *what) {
    fprintf(stderr, "llama_greedy: %s\n", what);
    return 1;
}

static int largest(const float *logits, int count) {
    int best = 0;
    for (int i = 1; i < count; i++) {
        if (logits[i] > logits[best]) best = i;
    }
    return best;
}

int main(int argc, char **argv) {
    llama_token ids[MOST];
    if (argc != 4) return fail("MODEL COUNT TEXT");
    llama_backend_init();
    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (!model) return fail("cannot load the model");
    const struct llama_vocab *vocab = llama_model_get_vocab(model);
    struct llama_context_params settings = llama_context_default_params();
    settings.n_ctx = MOST;
    settings.type_k = settings.type_v = GGML_TYPE_F32;
    struct llama_context *context = llama_init_from_model(model, settings);
    if (!context) return fail("cannot make a context");

    int count = llama_tokenize(vocab, argv[3], (int)strlen(argv[3]), ids, MOST, true, true);
    if (count < 1) return fail("cannot encode the text");
    for (int i = 0; i < count; i++) printf("%d ", ids[i]);
    printf("\n");
    for (int i = 0; i < atoi(argv[2]); i++) {
        if (llama_decode(context, llama_batch_get_one(ids, count))) return fail("cannot decode");
        ids[0] = largest(llama_get_logits_ith(context, -1), llama_vocab_n_tokens(vocab));
        count = 1;
        printf("%d ", ids[0]);
    }
    printf("\n");
    llama_free(context);
    llama_model_free(model);
    return 0;
}
