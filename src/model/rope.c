/* Rotary positions: their keys in config.json. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "model/model_reader.h"

static const char original_length[] = "original_max_position_embeddings";

/* The object that is being read, and under which key it stands. */
typedef struct rope_reader {
    const model_reader *r;
    const json_t *object;
    const char *key;
    const model_config *config;
    int64_t head_dim;
    model_rope *out;
} rope_reader;

static sifr_status wrong(const rope_reader *at, const char *what) {
    return base_fail(at->r->error, SIFR_USAGE, "%s: \"%s\" of type %s %s", at->r->name, at->key,
                     model_rope_kind_name((model_rope_kind)at->out->kind), what);
}

static sifr_status read_number(const rope_reader *at, const char *key, double fallback,
                               double least, double most, double *out) {
    return model_read_double_of(at->r, at->object, key, fallback, least, most, false, out);
}

static sifr_status need(const rope_reader *at, const char *key) {
    if (model_member(at->object, key)) return SIFR_OK;
    return base_fail(at->r->error, SIFR_USAGE, "%s: \"%s\" of type %s lacks \"%s\"", at->r->name,
                     at->key, model_rope_kind_name((model_rope_kind)at->out->kind), key);
}

/* "su" is the name that longrope had in the first Phi-3 folders. */
static sifr_status kind_of(const rope_reader *at, const char *type, int32_t *out) {
    for (int32_t kind = MODEL_ROPE_DEFAULT; kind <= MODEL_ROPE_LLAMA3; kind++) {
        if (!strcmp(type, model_rope_kind_name((model_rope_kind)kind))) {
            bool renamed = kind == MODEL_ROPE_YARN && at->out->phi3;
            return *out = renamed ? MODEL_ROPE_LONGROPE : kind, SIFR_OK;
        }
    }
    if (!strcmp(type, "su")) return *out = MODEL_ROPE_LONGROPE, SIFR_OK;
    return model_refuse(
        at->r, at->key,
        "supported rope types: default, linear, dynamic, proportional, yarn, longrope, llama3");
}

static sifr_status read_kind(const rope_reader *at) {
    const char *older_type, *type;
    int32_t older = MODEL_ROPE_DEFAULT;
    BASE_TRY(
        base_json_string(at->object, "type", "default", &older_type, at->r->name, at->r->error));
    BASE_TRY(
        base_json_string(at->object, "rope_type", older_type, &type, at->r->name, at->r->error));
    BASE_TRY(kind_of(at, type, &at->out->kind));
    BASE_TRY(kind_of(at, older_type, &older));
    if (!model_member(at->object, "type") || older == at->out->kind) return SIFR_OK;
    return base_fail(at->r->error, SIFR_USAGE, "%s: \"%s\" has two types, %.40s and %.40s",
                     at->r->name, at->key, type, older_type);
}

static sifr_status read_rotary_dim(const rope_reader *at) {
    const model_config *c = at->config;
    double whole = c->rotary_part == 0 ? 1 : c->rotary_part, part;
    BASE_TRY(read_number(at, "partial_rotary_factor", whole, 0, 1, &part));
    if (at->out->kind == MODEL_ROPE_PROPORTIONAL) {
        if (c->rotary_part != 0)
            return model_refuse(at->r, at->key,
                                "type proportional is for heads that turn as a whole");
        at->out->rotary_dim = at->head_dim;
        at->out->turning = (int64_t)floor(part * (double)at->head_dim / 2);
        return SIFR_OK;
    }
    if (c->rotary_part == 0 && part != 1) {
        return model_refuse(
            at->r, at->key,
            "rotary positions always apply to the whole head (partial_rotary_factor 1)");
    }
    at->out->rotary_dim = (int64_t)((double)at->head_dim * part);
    int64_t least = at->out->kind == MODEL_ROPE_DYNAMIC ? 4 : 2;
    if (at->out->rotary_dim % 2 == 0 && at->out->rotary_dim >= least) return SIFR_OK;
    return base_fail(
        at->r->error, SIFR_USAGE,
        "%s: %lld of a head's %lld elements have rotary positions "
        "(\"partial_rotary_factor\"), which turn pairs: an even number of at least %lld "
        "is needed",
        at->r->name, (long long)at->out->rotary_dim, (long long)at->head_dim, (long long)least);
}

/* A key of the top level goes before the one in the object. */
static sifr_status read_original_length(const rope_reader *at) {
    const json_t *holder = model_member(at->r->json, original_length) ? at->r->json : at->object;
    double fallback = (double)at->config->max_position_embeddings;
    if (at->out->phi3 && holder != at->r->json) return SIFR_OK; /* the class has a default */
    return model_read_double_of(at->r, holder, original_length, fallback, 2, MODEL_LIMIT_ID, false,
                                &at->out->original_max_position);
}

/* Where "factor" is null or absent: by how much positions are more than they were. */
static sifr_status read_growth(const rope_reader *at) {
    double growth = at->out->max_position / at->out->original_max_position;
    if (at->out->kind == MODEL_ROPE_YARN && !json_object_get(at->object, "factor"))
        return need(at, "factor");
    return read_number(at, "factor", growth, growth < 1 ? growth : 1, 1e9, &at->out->factor);
}

static double yarn_attention(double scale, double mscale) {
    return scale <= 1 ? 1 : 0.1 * mscale * log(scale) + 1;
}

static sifr_status read_yarn(const rope_reader *at) {
    model_rope *out = at->out;
    double above, below;
    bool truncate;
    BASE_TRY(read_growth(at));
    BASE_TRY(read_number(at, "beta_fast", 32, 0, 1e6, &out->beta_fast));
    BASE_TRY(read_number(at, "beta_slow", 1, 0, 1e6, &out->beta_slow));
    if (out->beta_fast == 0) out->beta_fast = 32;
    if (out->beta_slow == 0) out->beta_slow = 1;
    BASE_TRY(base_json_bool(at->object, "truncate", true, &truncate, at->r->name, at->r->error));
    out->truncate = truncate;
    BASE_TRY(read_number(at, "mscale", 0, 0, 1e6, &above));
    BASE_TRY(read_number(at, "mscale_all_dim", 0, 0, 1e6, &below));
    double factor = yarn_attention(out->factor, 1);
    if (above != 0 && below != 0)
        factor = yarn_attention(out->factor, above) / yarn_attention(out->factor, below);
    if (out->theta <= 1) return wrong(at, "needs a rope_theta above 1");
    return read_number(at, "attention_factor", factor, 1e-6, 1e6, &out->attention_factor);
}

static sifr_status read_factors(const rope_reader *at, const char *key, float *out) {
    const json_t *list = model_member(at->object, key);
    int64_t pairs = at->out->rotary_dim / 2;
    BASE_TRY(need(at, key));
    if (pairs > MODEL_LIMIT_ROPE_FACTORS) return wrong(at, "turns at most 512 elements of a head");
    if (!json_is_array(list) || (int64_t)json_array_size(list) != pairs) {
        return base_fail(at->r->error, SIFR_USAGE,
                         "%s: \"%s\": \"%s\" must be a list of %lld "
                         "numbers, one for each pair that turns",
                         at->r->name, at->key, key, (long long)pairs);
    }
    for (int64_t i = 0; i < pairs; i++) {
        double value = json_number_value(json_array_get(list, (size_t)i));
        if (!(value >= 1e-6 && value <= 1e9)) {
            return base_fail(at->r->error, SIFR_USAGE,
                             "%s: \"%s\": \"%s\" must hold numbers above 0", at->r->name, at->key,
                             key);
        }
        out[i] = (float)value;
    }
    return SIFR_OK;
}

static sifr_status read_longrope(const rope_reader *at) {
    model_rope *out = at->out;
    BASE_TRY(read_growth(at));
    BASE_TRY(read_factors(at, "short_factor", out->short_factor));
    BASE_TRY(read_factors(at, "long_factor", out->long_factor));
    double growth = out->factor <= 1 ? 0 : log(out->factor) / log(out->original_max_position);
    return read_number(at, "attention_factor", sqrt(1 + growth), 1e-6, 1e6, &out->attention_factor);
}

static sifr_status read_llama3(const rope_reader *at) {
    model_rope *out = at->out;
    BASE_TRY(need(at, "low_freq_factor"));
    BASE_TRY(need(at, "high_freq_factor"));
    BASE_TRY(read_number(at, "low_freq_factor", 1, 1e-6, 1e6, &out->low_freq_factor));
    BASE_TRY(read_number(at, "high_freq_factor", 4, 1e-6, 1e6, &out->high_freq_factor));
    if (out->high_freq_factor > out->low_freq_factor) return SIFR_OK;
    return base_fail(at->r->error, SIFR_USAGE,
                     "%s: \"%s\": high_freq_factor %g must be more than low_freq_factor %g",
                     at->r->name, at->key, out->high_freq_factor, out->low_freq_factor);
}

/* Keys of models that are not built. */
static sifr_status check_members(const rope_reader *at) {
    if (model_member(at->object, "mrope_section") && !model_reads(at->r, "mrope_section"))
        return model_refuse(at->r, at->key,
                            "positions are one number, not several (mrope_section)");
    double *beta = &at->out->query_beta;
    BASE_TRY(read_number(at, "llama_4_scaling_beta", 0, 0, 1e6, beta));
    if (*beta == 0) return SIFR_OK;
    if (!model_reads(at->r, "llama_4_scaling_beta"))
        return model_refuse(at->r, at->key, "queries are not scaled by position");
    if (at->out->kind >= MODEL_ROPE_YARN) return SIFR_OK;
    return wrong(at, "has no original length for \"llama_4_scaling_beta\"");
}

/* Hunyuan's "dynamic" with "alpha": a larger base, whatever a sequence's length. */
static sifr_status read_alpha(const rope_reader *at) {
    double alpha, dim = (double)at->out->rotary_dim;
    if (at->out->kind != MODEL_ROPE_DYNAMIC || !model_reads(at->r, "alpha")) return SIFR_OK;
    BASE_TRY(read_number(at, "alpha", 0, 0, 1e9, &alpha));
    if (alpha == 0) return SIFR_OK;
    at->out->kind = MODEL_ROPE_DEFAULT;
    at->out->theta *= pow(alpha, dim / (dim - 2));
    return SIFR_OK;
}

static sifr_status read_rope(const rope_reader *at) {
    model_rope *out = at->out;
    BASE_TRY(read_kind(at));
    BASE_TRY(read_rotary_dim(at));
    BASE_TRY(check_members(at));
    BASE_TRY(read_alpha(at));
    out->max_position = (double)at->config->max_position_embeddings;
    out->factor = 1;
    if (out->kind == MODEL_ROPE_DEFAULT) return SIFR_OK;
    if (out->kind >= MODEL_ROPE_YARN) BASE_TRY(read_original_length(at));
    if (out->kind == MODEL_ROPE_YARN) return read_yarn(at);
    if (out->kind == MODEL_ROPE_LONGROPE) return read_longrope(at);
    if (out->kind != MODEL_ROPE_PROPORTIONAL) BASE_TRY(need(at, "factor"));
    BASE_TRY(read_number(at, "factor", 1, 1, 1e6, &out->factor));
    return out->kind == MODEL_ROPE_LLAMA3 ? read_llama3(at) : SIFR_OK;
}

sifr_status model_read_rope_of(const model_reader *r, const json_t *object, const char *key,
                               const model_config *config, model_rope *out) {
    return read_rope(&(rope_reader){r, object, key, config, config->head_dim, out});
}

/* The object that holds the rule and, in *key, its name; NULL: none. */
static sifr_status find_object(const model_reader *r, const json_t **object, const char **key) {
    const json_t *newer = model_member(r->json, "rope_parameters");
    *key = "rope_scaling";
    *object = model_member(r->json, *key);
    if (*object && newer && !json_equal(*object, newer)) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"rope_scaling\" and \"rope_parameters\" differ: remove one",
                         r->name);
    }
    if (newer) *object = newer, *key = "rope_parameters";
    if (!*object || json_is_object(*object)) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE, "%s: \"%s\" must be an object", r->name, *key);
}

/* "rope_theta" of the object or `top` beside it, which may be NULL; *theta is the default. */
static sifr_status read_theta(const model_reader *r, const json_t *object, const char *key,
                              const char *top, double *theta) {
    bool both = top && model_member(r->json, top) && model_member(object, "rope_theta");
    if (top) BASE_TRY(model_read_double(r, top, *theta, 1, 1e15, false, theta));
    double outside = *theta;
    BASE_TRY(model_read_double_of(r, object, "rope_theta", outside, 1, 1e15, false, theta));
    if (!both || outside == *theta) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE,
                     "%s: \"%s\" is %g and \"%s.rope_theta\" is %g: remove one", r->name, top,
                     outside, key, *theta);
}

/* Objects in the object are rules of types of layers, of a family that has several. */
static sifr_status check_one_rule(const model_reader *r, const json_t *object, const char *key) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        if (json_is_object(value))
            return base_fail(r->error, SIFR_USAGE,
                             "%s: \"%s.%.60s\" is an object, but all layers of this model have one "
                             "rule: put what is in it into \"%s\"",
                             r->name, key, name, key);
    }
    return SIFR_OK;
}

sifr_status model_read_rope(const model_reader *r, model_config *out) {
    const json_t *rope;
    const char *key;
    BASE_TRY(find_object(r, &rope, &key));
    if (rope) BASE_TRY(check_one_rule(r, rope, key));
    BASE_TRY(read_theta(r, rope, key, "rope_theta", &out->rope.theta));
    return model_read_rope_of(r, rope, key, out, &out->rope);
}

static const char full[] = "full_attention", sliding[] = "sliding_attention";

/* Objects by type of layer; NULL: absent. */
static sifr_status find_objects(const model_reader *r, const json_t **whole, const json_t **local) {
    const json_t *older = model_member(r->json, "rope_scaling"), *value;
    const json_t *newer = model_member(r->json, "rope_parameters");
    const char *name;
    if (older && newer) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"rope_scaling\" and \"rope_parameters\" are both there: remove one",
                         r->name);
    }
    *whole = newer ? model_member(newer, full) : older;
    *local = newer ? model_member(newer, sliding) : NULL;
    bool right = (!newer || json_is_object(newer)) && (!*whole || json_is_object(*whole)) &&
                 (!*local || json_is_object(*local));
    json_object_foreach((json_t *)newer, name, value) {
        right &= !strcmp(name, full) || !strcmp(name, sliding);
    }
    if (right) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE, "%s: \"%s\" must be an object%s", r->name,
                     newer ? "rope_parameters" : "rope_scaling",
                     newer ? " that holds one for full_attention and one for sliding_attention"
                           : "");
}

sifr_status model_read_layer_ropes(const model_reader *r, const char *local_theta,
                                   model_config *out) {
    const json_t *whole, *local;
    BASE_TRY(find_objects(r, &whole, &local));
    const char *key =
        model_member(r->json, "rope_scaling") ? "rope_scaling" : "rope_parameters.full_attention";
    BASE_TRY(read_theta(r, whole, key, "rope_theta", &out->rope.theta));
    int64_t head_dim = out->full_head_dim ? out->full_head_dim : out->head_dim;
    BASE_TRY(read_rope(&(rope_reader){r, whole, key, out, head_dim, &out->rope}));
    key = "rope_parameters.sliding_attention";
    BASE_TRY(read_theta(r, local, key, local_theta, &out->local_rope.theta));
    BASE_TRY(model_read_rope_of(r, local, key, out, &out->local_rope));
    for (int64_t i = 0; i < out->num_hidden_layers; i++) {
        if (out->layers[i] & MODEL_LAYER_WINDOW) out->layers[i] |= MODEL_LAYER_LOCAL_ROPE;
    }
    return SIFR_OK;
}
