/* Rotary positions: their keys in config.json. */
#include <string.h>

#include "base/json.h"
#include "model/model_reader.h"

/* Rope scaling stands in "rope_scaling" (transformers 4) or "rope_parameters" (5); the base in the
 * latter or at the top. */
sifr_status model_read_rope(const model_reader *r, model_config *out) {
    const char *key = "rope_scaling";
    const json_t *rope = model_member(r->json, key),
                 *newer = model_member(r->json, "rope_parameters");
    if (rope && newer && !json_equal(rope, newer)) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"rope_scaling\" and \"rope_parameters\" differ: remove one",
                         r->name);
    }
    if (newer) rope = newer, key = "rope_parameters";
    if (rope && !json_is_object(rope)) {
        return base_fail(r->error, SIFR_USAGE, "%s: \"%s\" must be an object", r->name, key);
    }
    bool both = model_member(r->json, "rope_theta") && model_member(rope, "rope_theta");
    BASE_TRY(model_read_double(r, "rope_theta", out->rope.theta, 1, 1e15, false, &out->rope.theta));
    double top = out->rope.theta;
    BASE_TRY(model_read_double_of(r, rope, "rope_theta", top, 1, 1e15, false, &out->rope.theta));
    if (both && top != out->rope.theta) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"rope_theta\" is %g and \"%s.rope_theta\" is %g: remove one",
                         r->name, top, key, out->rope.theta);
    }
    const char *older_type, *type;
    BASE_TRY(base_json_string(rope, "type", "default", &older_type, r->name, r->error));
    BASE_TRY(base_json_string(rope, "rope_type", older_type, &type, r->name, r->error));
    if (model_member(rope, "type") && strcmp(type, older_type) != 0) {
        return base_fail(r->error, SIFR_USAGE, "%s: \"%s\" has two types, %.40s and %.40s", r->name,
                         key, type, older_type);
    }
    const json_t *part = model_member(rope, "partial_rotary_factor");
    if (part && !(json_is_number(part) && json_number_value(part) == 1.0)) {
        return model_refuse(
            r, key, "rotary positions always apply to the whole head (partial_rotary_factor 1)");
    }
    out->rope.factor = 1;
    if (!strcmp(type, "default")) return SIFR_OK;
    bool llama3 = !strcmp(type, "llama3");
    if (!llama3 && strcmp(type, "linear") != 0) {
        return model_refuse(r, key, "supported rope types: default, linear, llama3");
    }
    out->rope.kind = llama3 ? MODEL_ROPE_LLAMA3 : MODEL_ROPE_LINEAR;
    static const char *const needed[] = {"factor", "low_freq_factor", "high_freq_factor"};
    for (int i = 0; i < (llama3 ? 3 : 1); i++) {
        if (!model_member(rope, needed[i])) {
            return base_fail(r->error, SIFR_USAGE, "%s: \"%s\" of type %s lacks \"%s\"", r->name,
                             key, type, needed[i]);
        }
    }
    BASE_TRY(model_read_double_of(r, rope, "factor", 1, 1, 1e6, false, &out->rope.factor));
    if (!llama3) return SIFR_OK;
    BASE_TRY(model_read_double_of(r, rope, "low_freq_factor", 1, 1e-6, 1e6, false,
                                  &out->rope.low_freq_factor));
    BASE_TRY(model_read_double_of(r, rope, "high_freq_factor", 4, 1e-6, 1e6, false,
                                  &out->rope.high_freq_factor));
    if (out->rope.high_freq_factor <= out->rope.low_freq_factor) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"%s\": high_freq_factor %g must be more than low_freq_factor %g",
                         r->name, key, out->rope.high_freq_factor, out->rope.low_freq_factor);
    }
    static const char original[] = "original_max_position_embeddings";
    const json_t *holder = model_member(r->json, original) ? r->json : rope;
    return model_read_double_of(r, holder, original, (double)out->max_position_embeddings, 1,
                                MODEL_LIMIT_ID, false, &out->rope.original_max_position);
}

const char *model_rope_kind_name(model_rope_kind kind) {
    static const char *const names[] = {"default", "linear", "llama3"};
    return names[kind];
}
