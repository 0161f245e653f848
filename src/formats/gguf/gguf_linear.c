#include "formats/gguf/gguf_linear.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "formats/gguf/gguf_family_parts.h"

static const char *key_of(const formats_gguf_family *f, const char *name, char out[96]) {
    snprintf(out, 96, "%s.%s", f->name, name);
    return out;
}

static sifr_status add_size(const formats_gguf_family *f, const char *from, const char *to,
                            int64_t value, formats_gguf_meta *meta, const char *where,
                            sifr_error *error) {
    char key[96];
    if (value < 1 || value > UINT32_MAX)
        return base_fail(error, SIFR_USAGE, "%s: \"%s\" gives %lld, must be 1 to 2^32 - 1", where,
                         from, (long long)value);
    formats_gguf_add_u32(meta, key_of(f, to, key), (uint32_t)value);
    return SIFR_OK;
}

static sifr_status add_whole(const formats_gguf_family *f, const json_t *config, const char *from,
                             const char *to, formats_gguf_meta *meta, const char *where,
                             sifr_error *error) {
    int64_t value;
    BASE_TRY(base_json_int(config, from, 0, &value, where, error));
    return add_size(f, from, to, value, meta, where, error);
}

enum { MOST_LAYERS = 10000 };

/* How many there are; "layer_types" has a name for each, or is absent. */
static sifr_status read_layers(const json_t *config, int64_t *out, const char *where,
                               sifr_error *error) {
    const json_t *types = json_object_get(config, "layer_types");
    BASE_TRY(base_json_int(config, "num_hidden_layers", 0, out, where, error));
    if (*out < 1 || *out > MOST_LAYERS)
        return base_fail(error, SIFR_USAGE, "%s: \"num_hidden_layers\" is %lld, must be in 1 … %d",
                         where, (long long)*out, MOST_LAYERS);
    if (!json_is_array(types) || (int64_t)json_array_size(types) == *out) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: \"layer_types\" must have %lld names", where,
                     (long long)*out);
}

static bool is_layer(const json_t *config, int64_t layer, const char *type) {
    const json_t *list = json_object_get(config, "layer_types");
    const char *name = json_string_value(json_array_get(list, (size_t)layer));
    return name && !strcmp(name, type);
}

/* --- LFM2 --- */

static bool holds(const json_t *list, int64_t number) {
    const json_t *one;
    size_t i;
    json_array_foreach(list, i, one) {
        if (json_is_integer(one) && json_integer_value(one) == number) return true;
    }
    return false;
}

/* "layer_types", made of "full_attn_idxs" where it is absent. */
static sifr_status complete_types(json_t *config, const char *where, sifr_error *error) {
    const json_t *indices = json_object_get(config, "full_attn_idxs");
    int64_t layers;
    BASE_TRY(read_layers(config, &layers, where, error));
    if (json_is_array(json_object_get(config, "layer_types"))) return SIFR_OK;
    json_t *types = json_array();
    for (int64_t i = 0; i < layers; i++) {
        bool attends = !json_is_array(indices) || holds(indices, i);
        json_array_append_new(types, json_string(attends ? "full_attention" : "conv"));
    }
    bool whole = (int64_t)json_array_size(types) == layers;
    if (json_object_set_new(config, "layer_types", types) == 0 && whole) return SIFR_OK;
    return base_fail_alloc(error, layers);
}

/* The MLP's true size, as the class computes it. */
static sifr_status read_inner(const json_t *config, int64_t *out, const char *where,
                              sifr_error *error) {
    const double most = 1 << 30;
    bool adjusts, null = json_is_null(json_object_get(config, "block_ffn_dim_multiplier"));
    int64_t multiple;
    double factor;
    BASE_TRY(base_json_int(config, "intermediate_size", 0, out, where, error));
    BASE_TRY(base_json_int(config, "block_ff_dim", *out, out, where, error));
    BASE_TRY(base_json_bool(config, "block_auto_adjust_ff_dim", true, &adjusts, where, error));
    BASE_TRY(base_json_int(config, "block_multiple_of", 256, &multiple, where, error));
    BASE_TRY(base_json_double(config, "block_ffn_dim_multiplier", 1, &factor, where, error));
    if (*out < 0 || (double)*out > most || multiple < 1 || (double)multiple > most ||
        !(factor > 0 && factor * (double)*out <= most))
        return base_fail(error, SIFR_USAGE,
                         "%s: \"block_ff_dim\" (or \"intermediate_size\"), "
                         "\"block_ffn_dim_multiplier\" or \"block_multiple_of\" is out of range",
                         where);
    if (adjusts) *out = 2 * *out / 3;
    if (adjusts && !null) {
        *out = (int64_t)(factor * (double)*out);
        *out = (*out + multiple - 1) / multiple * multiple;
    }
    return SIFR_OK;
}

sifr_status formats_gguf_lfm2_keys(const formats_gguf_family *f, json_t *config,
                                   formats_gguf_meta *meta, const char *where, sifr_error *error) {
    bool biased;
    int64_t inner;
    BASE_TRY(base_json_bool(config, "conv_bias", false, &biased, where, error));
    if (biased)
        return base_fail(error, SIFR_USAGE,
                         "%s: \"conv_bias\": llama.cpp's lfm2 has no bias in convolutions, so "
                         "--format gguf cannot carry this model",
                         where);
    BASE_TRY(complete_types(config, where, error));
    BASE_TRY(read_inner(config, &inner, where, error));
    json_object_set_new(config, "intermediate_size", json_integer(inner));
    json_object_set(config, "rms_norm_eps", json_object_get(config, "norm_eps"));
    BASE_TRY(formats_gguf_plain_keys(f, config, meta, where, error));
    BASE_TRY(add_whole(f, config, "vocab_size", "vocab_size", meta, where, error));
    return add_whole(f, config, "conv_L_cache", "shortconv.l_cache", meta, where, error);
}

/* --- Qwen3.5 --- */

/* Which layers have linear attention; without "layer_types" llama.cpp counts by the interval. */
static sifr_status add_layers(const formats_gguf_family *f, const json_t *config,
                              formats_gguf_meta *meta, const char *where, sifr_error *error) {
    int64_t layers;
    char key[96];
    BASE_TRY(read_layers(config, &layers, where, error));
    BASE_TRY(add_whole(f, config, "full_attention_interval", "full_attention_interval", meta, where,
                       error));
    if (!json_is_array(json_object_get(config, "layer_types"))) return SIFR_OK;
    formats_gguf_add_array(meta, key_of(f, "attention.recurrent_layers", key), FORMATS_GGUF_BOOL,
                           (uint64_t)layers);
    for (int64_t i = 0; i < layers; i++)
        formats_gguf_item_bool(meta, is_layer(config, i, "linear_attention"));
    return SIFR_OK;
}

enum { SECTIONS = 4 };

/* Of rotary positions: of time, height, width, and one that text has not. */
static sifr_status read_sections(const json_t *config, int64_t rotated, int32_t out[SECTIONS],
                                 const char *where, sifr_error *error) {
    static const int32_t usual[SECTIONS] = {11, 11, 10, 0};
    const json_t *rope = json_object_get(config, "rope_parameters");
    const json_t *list = json_object_get(rope, "mrope_section");
    int64_t all = 0;
    bool good = true;
    memcpy(out, usual, sizeof usual);
    for (size_t i = 0; i < SECTIONS && json_is_array(list); i++) {
        json_int_t size = json_integer_value(json_array_get(list, i));
        good = good && size >= 0 && size <= INT32_MAX / SECTIONS;
        out[i] = good ? (int32_t)size : 0;
    }
    for (int i = 0; i < SECTIONS; i++) all += out[i];
    /* Of interleaved sections llama.cpp turns pair i by the position of section i % 3. */
    for (int64_t i = 0; good && all > 0 && i < rotated / 2; i++)
        good = i % all < 3 * out[i % all % 3];
    if (good && all > 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: \"mrope_section\" does not give each of %lld pairs of rotated elements a "
                     "position in llama.cpp's qwen35, so --format gguf cannot carry this model",
                     where, (long long)rotated / 2);
}

static sifr_status add_rotation(const formats_gguf_family *f, const json_t *config,
                                formats_gguf_meta *meta, const char *where, sifr_error *error) {
    const json_t *rope = json_object_get(config, "rope_parameters");
    int64_t size;
    double part;
    int32_t sections[SECTIONS];
    char key[96];
    BASE_TRY(base_json_int(config, "head_dim", 0, &size, where, error));
    BASE_TRY(base_json_double(config, "partial_rotary_factor", 0.25, &part, where, error));
    BASE_TRY(base_json_double(rope, "partial_rotary_factor", part, &part, where, error));
    if (!(part > 0 && part <= 1))
        return base_fail(error, SIFR_USAGE, "%s: \"partial_rotary_factor\" is %g, not above 0 to 1",
                         where, part);
    int64_t rotated = (int64_t)(part * (double)size);
    BASE_TRY(
        add_size(f, "partial_rotary_factor", "rope.dimension_count", rotated, meta, where, error));
    BASE_TRY(read_sections(config, rotated, sections, where, error));
    formats_gguf_add_array(meta, key_of(f, "rope.dimension_sections", key), FORMATS_GGUF_I32,
                           SECTIONS);
    for (int i = 0; i < SECTIONS; i++) formats_gguf_item_i32(meta, sections[i]);
    return SIFR_OK;
}

typedef struct linear_sizes {
    int64_t keys, values, key_dim, value_dim;
} linear_sizes;

static sifr_status read_sizes(const json_t *config, linear_sizes *out, const char *where,
                              sifr_error *error) {
    const struct {
        const char *key;
        int64_t *at;
    } each[] = {{"linear_num_key_heads", &out->keys},
                {"linear_num_value_heads", &out->values},
                {"linear_key_head_dim", &out->key_dim},
                {"linear_value_head_dim", &out->value_dim}};
    enum { MOST = 1 << 20 };
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        BASE_TRY(base_json_int(config, each[i].key, 0, each[i].at, where, error));
        if (*each[i].at >= 1 && *each[i].at <= MOST) continue;
        return base_fail(error, SIFR_USAGE, "%s: \"%s\" is %lld, must be in 1 … %d", where,
                         each[i].key, (long long)*each[i].at, MOST);
    }
    if (out->values % out->keys == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: \"linear_num_value_heads\" %lld is no multiple of "
                     "\"linear_num_key_heads\" %lld",
                     where, (long long)out->values, (long long)out->keys);
}

sifr_status formats_gguf_qwen35_keys(const formats_gguf_family *f, json_t *config,
                                     formats_gguf_meta *meta, const char *where,
                                     sifr_error *error) {
    linear_sizes s;
    BASE_TRY(read_sizes(config, &s, where, error));
    if (s.key_dim != s.value_dim)
        return base_fail(error, SIFR_USAGE,
                         "%s: \"linear_value_head_dim\" is %lld; llama.cpp's qwen35 has "
                         "\"linear_key_head_dim\", %lld, alone",
                         where, (long long)s.value_dim, (long long)s.key_dim);
    BASE_TRY(formats_gguf_plain_keys(f, config, meta, where, error));
    BASE_TRY(add_rotation(f, config, meta, where, error));
    BASE_TRY(add_whole(f, config, "linear_conv_kernel_dim", "ssm.conv_kernel", meta, where, error));
    BASE_TRY(add_size(f, "linear_key_head_dim", "ssm.state_size", s.key_dim, meta, where, error));
    BASE_TRY(add_size(f, "linear_num_key_heads", "ssm.group_count", s.keys, meta, where, error));
    BASE_TRY(
        add_size(f, "linear_num_value_heads", "ssm.time_step_rank", s.values, meta, where, error));
    BASE_TRY(add_size(f, "linear_num_value_heads", "ssm.inner_size", s.values * s.value_dim, meta,
                      where, error));
    return add_layers(f, config, meta, where, error);
}

/* --- rows --- */

sifr_status formats_gguf_value_heads(const json_t *config, const char *where,
                                     formats_gguf_change change, const formats_tensor *tensor,
                                     formats_gguf_heads *out, sifr_error *error) {
    linear_sizes s;
    bool columns = change == FORMATS_GGUF_VALUE_COLUMNS;
    bool behind = change == FORMATS_GGUF_QKV_ROWS || change == FORMATS_GGUF_QKV_KERNEL;
    BASE_TRY(read_sizes(config, &s, where, error));
    *out = (formats_gguf_heads){.keys = s.keys, .values = s.values};
    if (behind) out->before = 2 * s.keys * s.key_dim;
    bool flat = tensor->rank <= 2 || change == FORMATS_GGUF_QKV_KERNEL;
    int64_t rows = flat && tensor->rank > columns ? tensor->shape[columns] : 0;
    if (rows > out->before && (rows - out->before) % s.values == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: tensor %.200s does not have the %lld value heads of %s", where,
                     tensor->name, (long long)s.values, "\"linear_num_value_heads\"");
}

int64_t formats_gguf_value_row(const formats_gguf_heads *h, int64_t row, int64_t rows) {
    if (row < h->before) return row;
    int64_t at = row - h->before, size = (rows - h->before) / h->values, head = at / size;
    int64_t from = head % h->keys * (h->values / h->keys) + head / h->keys;
    return h->before + from * size + at % size;
}

sifr_status formats_gguf_keep_sections(const json_t *whole, json_t *text, sifr_error *error) {
    const json_t *inner = json_object_get(whole, "text_config");
    const json_t *type = json_object_get(text, "model_type");
    json_t *rope = json_object_get(inner, "rope_parameters");
    json_t *sections = json_object_get(rope, "mrope_section");
    if (!sections || strcmp(json_string_value(type), "qwen3_5_text") != 0) return SIFR_OK;
    rope = json_object_get(text, "rope_parameters"); /* a copy of its own */
    if (json_object_set(rope, "mrope_section", sections) == 0) return SIFR_OK;
    return base_fail_alloc(error, 1);
}
