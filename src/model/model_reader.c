#include "model/model_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

const json_t *model_member(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

sifr_status model_read_int(const model_reader *r, const char *key, const char *alias,
                           int64_t fallback, int64_t least, int64_t most, int64_t *out) {
    const char *used = key;
    if (alias && model_member(r->json, alias)) {
        int64_t a, b;
        BASE_TRY(base_json_int(r->json, alias, 0, &a, r->name, r->error));
        BASE_TRY(base_json_int(r->json, key, a, &b, r->name, r->error));
        if (a != b) {
            return base_fail(r->error, SIFR_USAGE,
                             "%s: \"%s\" is %lld but \"%s\", the same thing, is %lld: remove one",
                             r->name, key, (long long)b, alias, (long long)a);
        }
        used = alias;
    }
    BASE_TRY(base_json_int(r->json, used, fallback, out, r->name, r->error));
    if (*out < least || *out > most) {
        return base_fail(r->error, SIFR_USAGE, "%s: \"%s\" is %lld, must be in %lld … %lld",
                         r->name, used, (long long)*out, (long long)least, (long long)most);
    }
    return SIFR_OK;
}

sifr_status model_read_double_of(const model_reader *r, const json_t *object, const char *key,
                                 double fallback, double least, double most, bool open,
                                 double *out) {
    BASE_TRY(base_json_double(object, key, fallback, out, r->name, r->error));
    if (!(*out >= least) || !(open ? *out < most : *out <= most)) {
        return base_fail(r->error, SIFR_USAGE, "%s: \"%s\" is %g, must be %s %g and %s %g", r->name,
                         key, *out, "at least", least, open ? "less than" : "at most", most);
    }
    return SIFR_OK;
}

sifr_status model_read_double(const model_reader *r, const char *key, double fallback, double least,
                              double most, bool open, double *out) {
    return model_read_double_of(r, r->json, key, fallback, least, most, open, out);
}

sifr_status model_read_token_id(const model_reader *r, const char *key, int64_t fallback,
                                int64_t *out) {
    if (!json_object_get(r->json, key)) return *out = fallback, SIFR_OK;
    return model_read_int(r, key, NULL, -1, -1, MODEL_LIMIT_ID, out);
}

sifr_status model_read_eos(const model_reader *r, int64_t fallback, model_config *out) {
    const json_t *list = json_object_get(r->json, "eos_token_id");
    if (!json_is_array(list)) {
        BASE_TRY(model_read_token_id(r, "eos_token_id", fallback, &out->eos_token_ids[0]));
        out->eos_count = out->eos_token_ids[0] >= 0;
        return SIFR_OK;
    }
    if (json_array_size(list) > FORMATS_EOS_LIMIT) {
        return base_fail(r->error, SIFR_USAGE, "%s: \"eos_token_id\" has %zu ids, at most %d work",
                         r->name, json_array_size(list), FORMATS_EOS_LIMIT);
    }
    out->eos_count = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *id = json_array_get(list, i);
        int64_t value = json_is_integer(id) ? (int64_t)json_integer_value(id) : -1;
        if (value < 0 || value > MODEL_LIMIT_ID) {
            return base_fail(r->error, SIFR_USAGE,
                             "%s: \"eos_token_id\" must hold whole numbers in 0 … %d", r->name,
                             MODEL_LIMIT_ID);
        }
        out->eos_token_ids[out->eos_count++] = value;
    }
    return SIFR_OK;
}

sifr_status model_refuse(const model_reader *r, const char *key, const char *why) {
    char *text = base_json_text(json_object_get(r->json, key));
    sifr_status status =
        base_fail(r->error, SIFR_USAGE, "%s: \"%s\": %.60s is not supported yet: %s", r->name, key,
                  text ? text : "this", why);
    free(text);
    return status;
}

sifr_status model_read_bool(const model_reader *r, const char *key, bool fallback, bool *out) {
    return base_json_bool(r->json, key, fallback, out, r->name, r->error);
}

sifr_status model_read_window(const model_reader *r, int64_t fallback, model_config *out) {
    const json_t *given = json_object_get(r->json, "sliding_window");
    if (json_is_null(given)) return out->sliding_window = 0, SIFR_OK;
    if (!given) return out->sliding_window = fallback, SIFR_OK;
    return model_read_int(r, "sliding_window", NULL, 1, 1, MODEL_LIMIT_ID, &out->sliding_window);
}

static sifr_status read_layer_type(const model_reader *r, const json_t *type, model_config *out,
                                   uint8_t *layer) {
    const char *name = json_string_value(type);
    bool window = name && !strcmp(name, "sliding_attention");
    if (!window && (!name || strcmp(name, "full_attention") != 0)) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"layer_types\" names %.60s, which is not supported (supported: "
                         "full_attention, sliding_attention)",
                         r->name, name ? name : "something that is not a string");
    }
    if (window && !out->sliding_window) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"layer_types\" names sliding_attention, but \"sliding_window\" is "
                         "not set",
                         r->name);
    }
    *layer = (uint8_t)((*layer & ~MODEL_LAYER_WINDOW) | (window ? MODEL_LAYER_WINDOW : 0));
    return SIFR_OK;
}

sifr_status model_read_layer_types(const model_reader *r, model_config *out) {
    const json_t *list = model_member(r->json, "layer_types");
    if (!list) return SIFR_OK;
    if (!json_is_array(list) || (int64_t)json_array_size(list) != out->num_hidden_layers) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"layer_types\" must be a list of %lld names, one for each layer",
                         r->name, (long long)out->num_hidden_layers);
    }
    for (size_t i = 0; i < json_array_size(list); i++)
        BASE_TRY(read_layer_type(r, json_array_get(list, i), out, &out->layers[i]));
    return SIFR_OK;
}

static const struct {
    const char *name;
    model_activation_kind activation;
} activations[] = {
    {"gelu_new", MODEL_GELU_TANH},  {"gelu_pytorch_tanh", MODEL_GELU_TANH},
    {"gelu_fast", MODEL_GELU_TANH}, {"gelu", MODEL_GELU_ERF},
    {"silu", MODEL_SILU},           {"swish", MODEL_SILU},
    {"relu", MODEL_RELU},           {"relu2", MODEL_RELU_SQUARED},
    {"tanh", MODEL_TANH},           {"quick_gelu", MODEL_QUICK_GELU},
    {"xielu", MODEL_XIELU},
};

sifr_status model_read_activation(const model_reader *r, const char *key, unsigned known,
                                  model_activation_kind fallback, model_activation_kind *out) {
    const char *name;
    char supported[256] = "";
    *out = fallback;
    BASE_TRY(base_json_string(r->json, key, NULL, &name, r->name, r->error));
    if (!name) return SIFR_OK;
    size_t length = 0;
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        if (!(known & MODEL_ONE_OF(activations[i].activation))) continue;
        if (!strcmp(activations[i].name, name)) return *out = activations[i].activation, SIFR_OK;
        length += (size_t)snprintf(supported + length, sizeof supported - length, "%s%s",
                                   length ? ", " : "", activations[i].name);
    }
    return base_fail(r->error, SIFR_USAGE,
                     "%s: \"%s\": \"%.60s\" is not supported yet (supported: %s)", r->name, key,
                     name, supported);
}

const char *model_activation_name(model_activation_kind activation) {
    static const char *const names[] = {"gelu_new", "gelu", "silu",       "relu",
                                        "relu2",    "tanh", "quick_gelu", "xielu"};
    return names[activation];
}
