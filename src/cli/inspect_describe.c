#include "cli/inspect_describe.h"
#include "cli/options.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "data/stream/token_store.h"
#include "engine/handle.h"
#include "formats/weights.h"
#include "model/model_config.h"
#include "model/registry.h"
#include "text/tokenizer/tokenizer_files.h"

enum { JSON_FILE_LIMIT = 256 << 20 };

static bool ends_with(const char *text, const char *end) {
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static sifr_status finish(json_t *made, json_t **out, sifr_error *error) {
    *out = made;
    return made ? SIFR_OK : base_fail_alloc(error, 256);
}

/* How many layers there are of each type, by transformers' names, where they are not all alike. */
static void add_layer_types(const model_config *c, json_t *config) {
    static const struct {
        unsigned bit;
        const char *name;
    } types[] = {{MODEL_LAYER_CONVOLUTION, "conv"},
                 {MODEL_LAYER_LINEAR, "linear_attention"},
                 {MODEL_LAYER_WINDOW, "sliding_attention"},
                 {0, "full_attention"}};
    enum { TYPES = sizeof types / sizeof *types };
    int64_t counts[TYPES] = {0};
    for (int64_t l = 0; l < c->num_hidden_layers; l++) {
        int t = 0;
        while (types[t].bit && !(c->layers[l] & types[t].bit)) t++;
        counts[t]++;
    }
    if (counts[TYPES - 1] == c->num_hidden_layers) return;
    json_t *layers = json_object();
    for (int t = 0; t < TYPES; t++)
        if (counts[t]) json_object_set_new(layers, types[t].name, json_integer(counts[t]));
    json_object_set_new(config, "layers_of_type", layers);
}

static void add_text_layers(const model_config *c, json_t *config) {
    const struct {
        const char *key;
        int64_t value;
    } linear[] = {{"linear_num_key_heads", c->linear.keys},
                  {"linear_num_value_heads", c->linear.values},
                  {"linear_key_head_dim", c->linear.key_dim},
                  {"linear_value_head_dim", c->linear.value_dim},
                  {"linear_conv_kernel_dim", c->convolution_size}};
    if (c->multimodal) json_object_set_new(config, "text_model", json_string(c->text_type));
    add_layer_types(c, config);
    for (size_t i = 0; c->linear.keys && i < sizeof linear / sizeof *linear; i++)
        json_object_set_new(config, linear[i].key, json_integer(linear[i].value));
    if (c->convolution_size && !c->linear.keys) {
        json_object_set_new(config, "conv_L_cache", json_integer(c->convolution_size));
        json_object_set_new(config, "conv_bias", json_boolean(c->convolution_bias));
    }
}

static json_t *config_json(const model_config *c) {
    json_t *eos = json_array();
    for (int i = 0; i < c->eos_count; i++) {
        json_array_append_new(eos, json_integer(c->eos_token_ids[i]));
    }
    json_t *config = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:b, s:b, s:b, s:f, s:f, s:f, "
        "s:f, s:I, s:o, s:I}",
        "model_type", c->model_type, "vocab_size", (json_int_t)c->vocab_size, "hidden_size",
        (json_int_t)c->hidden_size, "num_hidden_layers", (json_int_t)c->num_hidden_layers,
        "num_attention_heads", (json_int_t)c->num_attention_heads, "num_key_value_heads",
        (json_int_t)c->num_key_value_heads, "head_dim", (json_int_t)c->head_dim,
        "intermediate_size", (json_int_t)c->intermediate_size, "max_position_embeddings",
        (json_int_t)c->max_position_embeddings, "activation", model_activation_name(c->activation),
        "norm_eps", c->norm_eps, "tie_word_embeddings", c->tie_word_embeddings, "attention_bias",
        c->attention_bias, "mlp_bias", c->mlp_bias, "initializer_range", c->initializer_range,
        "embedding_dropout", c->embedding_dropout, "residual_dropout", c->residual_dropout,
        "attention_dropout", c->attention_dropout, "bos_token_id", (json_int_t)c->bos_token_id,
        "eos_token_id", eos, "pad_token_id", (json_int_t)c->pad_token_id);
    if (config && c->full_head_dim) {
        json_object_set_new(config, "global_head_dim", json_integer(c->full_head_dim));
        json_object_set_new(config, "num_global_key_value_heads", json_integer(c->full_kv_heads));
    }
    if (config && c->shared_kv_layers) {
        json_object_set_new(config, "num_kv_shared_layers", json_integer(c->shared_kv_layers));
        json_object_set_new(config, "use_double_wide_mlp", json_boolean(c->wide_shared_mlp));
    }
    if (config && c->layer_input_size)
        json_object_set_new(config, "hidden_size_per_layer_input",
                            json_integer(c->layer_input_size));
    if (config && c->sliding_window)
        json_object_set_new(config, "sliding_window", json_integer(c->sliding_window));
    if (config) add_text_layers(c, config);
    const model_architecture *architecture = model_architecture_find(c->model_type);
    if (!config || !architecture || architecture->learned_positions) return config;
    json_t *rope =
        json_pack("{s:s, s:f}", "rope_type", model_rope_kind_name((model_rope_kind)c->rope.kind),
                  "rope_theta", c->rope.theta);
    if (c->rope.kind != MODEL_ROPE_DEFAULT) {
        json_object_set_new(rope, "factor", json_real(c->rope.factor));
    }
    if (c->rope.rotary_dim != c->head_dim) {
        json_object_set_new(rope, "rotary_dim", json_integer(c->rope.rotary_dim));
    }
    if (c->rope.attention_factor != 0) {
        json_object_set_new(rope, "attention_factor", json_real(c->rope.attention_factor));
    }
    if (c->rope.kind == MODEL_ROPE_LLAMA3) {
        json_object_set_new(rope, "low_freq_factor", json_real(c->rope.low_freq_factor));
        json_object_set_new(rope, "high_freq_factor", json_real(c->rope.high_freq_factor));
    }
    if (c->rope.kind >= MODEL_ROPE_YARN) {
        json_object_set_new(rope, "original_max_position_embeddings",
                            json_real(c->rope.original_max_position));
    }
    json_object_set_new(config, "rope_parameters", rope);
    return config;
}

/* Adds "tensors", "parameters", "bytes", "files". */
static sifr_status add_weights(const char *path, json_t *into, sifr_error *error) {
    formats_weights *weights;
    sifr_log log = cli_log("inspect");
    BASE_TRY(formats_weights_open(path, &weights, error));
    formats_weights_warn(weights, &log);
    json_t *list = json_array();
    int64_t parameters = 0;
    for (size_t i = 0; i < formats_weights_count(weights); i++) {
        const formats_tensor *t = formats_weights_at(weights, i);
        json_t *shape = json_array();
        for (int k = 0; k < t->rank; k++) json_array_append_new(shape, json_integer(t->shape[k]));
        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:I}", "name", t->name, "dtype",
                                              formats_dtype_name(t->dtype), "shape", shape, "bytes",
                                              (json_int_t)t->bytes));
        parameters += t->elements;
    }
    json_object_set_new(into, "parameters", json_integer(parameters));
    json_object_set_new(into, "bytes", json_integer((json_int_t)formats_weights_bytes(weights)));
    json_object_set_new(into, "files",
                        json_integer((json_int_t)formats_weights_file_count(weights)));
    json_object_set_new(into, "tensors", list);
    formats_weights_close(weights);
    return SIFR_OK;
}

/* Of a folder with a tower: what is beside its text model. Nothing of one that does not open. */
static void add_carried(const char *path, json_t *into) {
    engine_folder folder = {0};
    const formats_tensor **carried;
    size_t count;
    int64_t bytes = 0;
    if (engine_folder_open(path, &folder, NULL) != SIFR_OK) return;
    if (engine_find_carried(folder.model, folder.architecture, folder.weights, &carried, &count,
                            NULL) == SIFR_OK) {
        for (size_t i = 0; i < count; i++) bytes += (int64_t)carried[i]->bytes;
        json_object_set_new(
            into, "carried",
            json_pack("{s:I, s:I}", "tensors", (json_int_t)count, "bytes", (json_int_t)bytes));
        free((void *)carried);
    }
    engine_folder_close(&folder);
}

/* {"type": …} for a part of a tokenizer.json, or null. */
static json_t *part_type(const json_t *tokenizer, const char *part) {
    const json_t *type = json_object_get(json_object_get(tokenizer, part), "type");
    return json_is_string(type) ? json_string(json_string_value(type)) : json_null();
}

static sifr_status describe_tokenizer(const json_t *json, const char *path, json_t **out,
                                      sifr_error *error) {
    const json_t *model = json_object_get(json, "model"), *vocab = json_object_get(model, "vocab");
    if (!json_is_object(model) || (!json_is_object(vocab) && !json_is_array(vocab))) {
        return base_fail(error, SIFR_FAILED,
                         "%s: not a tokenizer: it has no \"model\" with a \"vocab\"", path);
    }
    size_t size = json_is_object(vocab) ? json_object_size(vocab) : json_array_size(vocab);
    return finish(
        json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "kind", "tokenizer", "path",
                  path, "model", part_type(json, "model"), "vocab", (json_int_t)size, "merges",
                  (json_int_t)json_array_size(json_object_get(model, "merges")), "added_tokens",
                  (json_int_t)json_array_size(json_object_get(json, "added_tokens")), "normalizer",
                  part_type(json, "normalizer"), "pre_tokenizer", part_type(json, "pre_tokenizer"),
                  "post_processor", part_type(json, "post_processor"), "decoder",
                  part_type(json, "decoder")),
        out, error);
}

static sifr_status describe_folder(const char *path, json_t **out, sifr_error *error) {
    char file[BASE_PATH_LENGTH];
    sifr_status status = SIFR_OK;
    sifr_error inner = {0};
    bool tower = false;
    json_t *json, *part,
        *made = json_pack("{s:s, s:s, s:{}, s:n, s:n}", "kind", "model", "path", path, "config",
                          "weights", "tokenizer");
    if (!made) return base_fail_alloc(error, 256);

    BASE_TRY_GOTO(status, base_path_join(file, path, "config.json", error), done);
    if (access(file, F_OK) == 0) {
        /* The folder of an unsupported architecture can still be inspected. */
        model_config config;
        bool good = model_config_load(file, &config, &inner) == SIFR_OK;
        tower = good && config.multimodal;
        json_object_set_new(made, "config",
                            good ? config_json(&config)
                                 : json_pack("{s:s}", "error", inner.message));
    } else {
        json_object_set_new(made, "config", json_null());
    }

    if (formats_weights_there(path)) {
        json_object_set_new(made, "weights", part = json_object());
        BASE_TRY_GOTO(status, add_weights(path, part, error), done);
        if (tower) add_carried(path, made);
    }

    BASE_TRY_GOTO(status, base_path_join(file, path, "tokenizer.json", error), done);
    if (access(file, F_OK) == 0) {
        BASE_TRY_GOTO(status, base_json_load(file, JSON_FILE_LIMIT, &json, error), done);
        status = describe_tokenizer(json, file, &part, error);
        json_decref(json);
        if (status != SIFR_OK) goto done;
        json_object_set_new(made, "tokenizer", part);
    } else if (text_tokenizer_other_file(path)) {
        char *eos = NULL;
        if (text_tokenizer_convert(path, &json, file, &eos, &inner) == SIFR_OK) {
            status = describe_tokenizer(json, file, &part, error);
            json_decref(json);
            free(eos);
            if (status != SIFR_OK) goto done;
        } else {
            part = json_pack("{s:s}", "error", inner.message);
        }
        json_object_set_new(made, "tokenizer", part);
    }
    *out = made;
    made = NULL;
done:
    json_decref(made);
    return status;
}

/* An adapter folder has the keys of PEFT's LoraConfig in place of a model's. */
static sifr_status describe_adapter(const char *path, json_t **out, sifr_error *error) {
    char file[BASE_PATH_LENGTH];
    json_t *json, *made = NULL, *weights;
    BASE_TRY(base_path_join(file, path, "adapter_config.json", error));
    BASE_TRY(base_json_load(file, JSON_FILE_LIMIT, &json, error));
    sifr_status status = describe_folder(path, &made, error);
    if (status == SIFR_OK) {
        json_object_set_new(made, "kind", json_string("adapter"));
        json_object_set(made, "config", json);
        status = base_path_join(file, path, ENGINE_ADAPTER_FILE, error);
    }
    if (status == SIFR_OK && base_is_file(file)) {
        json_object_set_new(made, "weights", weights = json_object());
        status = add_weights(file, weights, error);
    }
    json_decref(json);
    if (status != SIFR_OK) return json_decref(made), status;
    *out = made;
    return SIFR_OK;
}

static sifr_status describe_safetensors(const char *path, json_t **out, sifr_error *error) {
    json_t *made = json_pack("{s:s, s:s}", "kind", "safetensors", "path", path);
    sifr_status status = add_weights(path, made, error);
    if (status != SIFR_OK) return json_decref(made), status;
    return finish(made, out, error);
}

static sifr_status describe_store(const char *prefix, json_t **out, sifr_error *error) {
    data_token_store store;
    BASE_TRY(data_token_store_open(prefix, &store, error));
    int64_t shortest = INT64_MAX, longest = 0, first, count;
    for (int64_t i = 0; i < store.documents; i++) {
        data_token_store_document(&store, i, &first, &count);
        shortest = count < shortest ? count : shortest;
        longest = count > longest ? count : longest;
    }
    if (!store.documents) shortest = 0;
    json_t *made =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:s, s:I, s:I, s:I}", "kind", "token store", "path",
                  prefix, "tokens", (json_int_t)store.tokens, "documents",
                  (json_int_t)store.documents, "sequences", (json_int_t)store.sequences, "type",
                  store.token_bytes == 2   ? (store.token_signed ? "i16" : "u16")
                  : store.token_bytes == 4 ? (store.token_signed ? "i32" : "u32")
                  : store.token_bytes == 8 ? "i64"
                                           : "u8",
                  "bytes", (json_int_t)store.data.size, "shortest_document", (json_int_t)shortest,
                  "longest_document", (json_int_t)longest);
    data_token_store_close(&store);
    return finish(made, out, error);
}

/* The manifest as it is; for each of its files, whether the file exists and has the recorded size.
 */
static sifr_status describe_checkpoint(const char *path, const char *manifest_path, json_t **out,
                                       sifr_error *error) {
    json_t *manifest, *entry, *files = json_array();
    size_t i;
    sifr_status status = base_json_load(manifest_path, JSON_FILE_LIMIT, &manifest, error);
    if (status != SIFR_OK) return json_decref(files), status;
    json_array_foreach(json_object_get(manifest, "files"), i, entry) {
        const char *name = json_string_value(json_object_get(entry, "name"));
        char file[BASE_PATH_LENGTH];
        const char *found = "unnamed";
        if (name && !strchr(name, '/') && base_path_join(file, path, name, NULL) == SIFR_OK) {
            int descriptor;
            uint64_t size = 0;
            found = "missing";
            if (base_open_read(file, &descriptor, &size, NULL) == SIFR_OK) {
                close(descriptor);
                json_int_t wanted = json_integer_value(json_object_get(entry, "bytes"));
                found = size == (uint64_t)wanted ? "there" : "of another size";
            }
        }
        json_array_append_new(files, json_pack("{s:s, s:O, s:s}", "name", name ? name : "", "bytes",
                                               json_object_get(entry, "bytes"), "found", found));
    }
    json_t *made = json_pack("{s:s, s:s, s:o, s:o}", "kind", "checkpoint", "path", path, "files",
                             files, "manifest", manifest);
    return finish(made, out, error);
}

static sifr_status describe_directory(const char *path, json_t **out, sifr_error *error) {
    static const char *const signs[] = {"config.json", "tokenizer.json"};
    char file[BASE_PATH_LENGTH];
    BASE_TRY(base_path_join(file, path, "manifest.json", error));
    if (access(file, F_OK) == 0) return describe_checkpoint(path, file, out, error);
    if (formats_weights_there(path)) return describe_folder(path, out, error);
    if (base_has_file(path, "adapter_config.json")) return describe_adapter(path, out, error);
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        BASE_TRY(base_path_join(file, path, signs[i], error));
        if (access(file, F_OK) == 0) return describe_folder(path, out, error);
    }
    return base_fail(error, SIFR_USAGE,
                     "%s: a directory without config.json, model.safetensors, tokenizer.json or "
                     "manifest.json: neither a model folder nor a checkpoint",
                     path);
}

static sifr_status describe_json(const char *path, json_t **out, sifr_error *error) {
    json_t *json;
    char directory[BASE_PATH_LENGTH];
    BASE_TRY(base_json_load(path, JSON_FILE_LIMIT, &json, error));
    sifr_status status;
    if (json_object_get(json, "model_type")) {
        model_config config;
        status = model_config_load(path, &config, error);
        if (status == SIFR_OK) {
            status = finish(json_pack("{s:s, s:s, s:o}", "kind", "config", "path", path, "config",
                                      config_json(&config)),
                            out, error);
        }
    } else if (json_object_get(json, "weight_map") && strlen(path) < sizeof directory) {
        strcpy(directory, path);
        char *slash = strrchr(directory, '/');
        if (slash) *slash = 0;
        status = describe_folder(slash == directory ? "/" : slash ? directory : ".", out, error);
    } else if (json_object_get(json, "model")) {
        status = describe_tokenizer(json, path, out, error);
    } else {
        status = base_fail(
            error, SIFR_USAGE,
            "%s: JSON, but not a config.json, a tokenizer.json or an index of weights", path);
    }
    json_decref(json);
    return status;
}

sifr_status cli_describe(const char *path, json_t **out, sifr_error *error) {
    char prefix[BASE_PATH_LENGTH];
    if (base_is_directory(path)) return describe_directory(path, out, error);
    if (data_token_store_prefix(path, prefix)) return describe_store(prefix, out, error);
    if (access(path, F_OK) != 0) {
        return base_fail(error, SIFR_FAILED, "%s: no such file, directory or token store", path);
    }
    if (ends_with(path, ".json")) return describe_json(path, out, error);
    if (ends_with(path, ".safetensors")) return describe_safetensors(path, out, error);
    return base_fail(
        error, SIFR_USAGE,
        "%s: cannot be inspected: it is not a model folder, a checkpoint, a "
        ".safetensors or tokenizer.json file, a token file of llm.c, or the prefix of a "
        ".bin and .idx pair",
        path);
}
