/* The config.json parser on any bytes: no crash, one line of message, and what it accepts keeps
 * its promises. Then the change of a dtype in the text: the result says it, and all else stays. */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "formats/config_edit.h"
#include "model/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth) {
    if (!truth) abort();
}

static void check_config(const model_config *c) {
    must(model_architecture_find(c->model_type) != NULL);
    must(c->vocab_size > 0 && c->num_hidden_layers > 0 && c->intermediate_size > 0);
    must(c->num_key_value_heads > 0 && c->num_attention_heads % c->num_key_value_heads == 0);
    must(c->hidden_size > 0 && c->head_dim > 0);
    must(!c->full_head_dim || (c->full_kv_heads > 0 && c->full_head_dim % 2 == 0 &&
                               c->num_attention_heads % c->full_kv_heads == 0));
    must(c->max_position_embeddings > 0 && c->eos_count >= 0 && c->eos_count <= FORMATS_EOS_LIMIT);
    must(isfinite(c->rope.theta) && isfinite(c->rope.factor) && c->norm_eps > 0);
    must(c->attention_dropout >= 0 && c->attention_dropout < 1);
}

static void check_dtype(const char *before, size_t size) {
    char *after;
    size_t length;
    if (formats_config_set_dtype(before, size, "input", "bfloat16", &after, &length, NULL)) return;
    json_t *a, *b;
    must(base_json_parse(before, size, "before", &a, NULL) == SIFR_OK);
    must(base_json_parse(after, length, "after", &b, NULL) == SIFR_OK);
    const char *older = json_string_value(json_object_get(b, "torch_dtype"));
    const char *newer = json_string_value(json_object_get(b, "dtype"));
    must((older && !strcmp(older, "bfloat16")) || (newer && !strcmp(newer, "bfloat16")));
    must((!older || !strcmp(older, "bfloat16")) && (!newer || !strcmp(newer, "bfloat16")));
    static const char *const keys[] = {"torch_dtype", "dtype"};
    for (int i = 0; i < 2; i++) {
        json_object_del(a, keys[i]);
        json_object_del(b, keys[i]);
    }
    must(json_equal(a, b));
    json_decref(a);
    json_decref(b);
    free(after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    model_config config;
    sifr_error error = {0};
    const char *text = (const char *)data;
    if (model_config_parse(text, size, "input", &config, &error) == SIFR_OK) {
        check_config(&config);
    } else {
        must(error.status == SIFR_USAGE && error.message[0] && !strchr(error.message, '\n'));
    }
    check_dtype(text, size);
    return 0;
}
