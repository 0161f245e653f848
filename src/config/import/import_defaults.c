/* What a source takes where it leaves a key out, and sifr would take something else. */
#include <stdio.h>
#include <string.h>

#include "config/config_private.h"
#include "config/import/import_private.h"

/* Takes the reference over. A value that is there, if only of the DeepSpeed config, counts; `word`
 * is that of the source, NULL: the same. */
static sifr_status take_as(import_state *s, const char *key, const char *word, const char *to,
                           json_t *value, const char *more) {
    char from[80], where[120];
    const json_t *there = import_get(s, to);
    if (there && !config_value_is_auto(there)) {
        json_decref(value);
        return SIFR_OK;
    }
    snprintf(from, sizeof from, "its default of %.40s", key);
    snprintf(where, sizeof where, "%s%s", to, more);
    json_t *own = word ? json_string(word) : json_incref(value);
    import_say_kept(s, from, own, where);
    json_decref(own);
    return import_put(s, to, value);
}

static sifr_status take(import_state *s, const char *key, const char *to, json_t *value,
                        const char *more) {
    return take_as(s, key, NULL, to, value, more);
}

static bool is_number(const import_state *s, const char *path) {
    return json_is_number(import_get(s, path));
}

/* bf16, where no type is named. */
static sifr_status take_bf16(import_state *s) {
    static const char *const types[] = {"bf16", "bfloat16", "fp16", "float16", "float32", NULL};
    const json_t *half = import_get(s, "fp16.enabled");
    bool named = half && !config_value_is_auto(half);
    for (const char *const *key = types; *key; key++)
        named |=
            json_object_get(s->source, *key) && !json_is_null(json_object_get(s->source, *key));
    if (named) return SIFR_OK;
    return take(s, "bf16", "bf16.enabled", json_true(), "");
}

static bool has_warmup(const import_state *s) {
    return import_get(s, "sifr.warmup_steps") || import_get(s, "sifr.warmup_ratio") ||
           import_get(s, "scheduler.type");
}

/* --- axolotl --- */

/* The older batch_size is that of a rank's whole step. */
static sifr_status take_batch_size(import_state *s) {
    static const char *const to = "sifr.gradient_accumulation_steps", *const from = "batch_size";
    json_t *value = json_object_get(s->source, from);
    int64_t whole = json_integer_value(value);
    int64_t micro = json_integer_value(import_get(s, "sifr.per_device_train_batch_size"));
    if (!import_asks(value)) return SIFR_OK;
    if (import_get(s, to)) {
        import_say_idle(s, from, value, "gradient_accumulation_steps counts");
    } else if (micro < 1 || whole < micro) {
        import_say_left(s, from, value, "give gradient_accumulation_steps");
    } else {
        import_say_kept(s, from, value, "sifr.gradient_accumulation_steps, its micro batches");
        return import_put(s, to, json_integer(whole / micro));
    }
    return SIFR_OK;
}

sifr_status import_axolotl_defaults(import_state *s) {
    bool sized = is_number(s, "train_micro_batch_size_per_gpu") || is_number(s, "train_batch_size");
    bool counted = json_integer_value(import_get(s, "sifr.max_steps")) > 0;
    BASE_TRY(take(s, "sequence_len", "sifr.seq_length", json_integer(512), ""));
    if (!sized)
        BASE_TRY(
            take(s, "micro_batch_size", "sifr.per_device_train_batch_size", json_integer(1), ""));
    BASE_TRY(take_batch_size(s));
    if (!counted) BASE_TRY(take(s, "num_epochs", "sifr.num_train_epochs", json_integer(1), ""));
    BASE_TRY(take_bf16(s));
    if (has_warmup(s)) return SIFR_OK;
    return take(s, "warmup_ratio", "sifr.warmup_ratio", json_real(0.03),
                " (there at most 100 steps)");
}

/* axolotl's sampler of packs has no batch that is not full (MultipackBatchSampler, drop_last). */
sifr_status import_axolotl_packed(import_state *s) {
    if (!json_is_true(import_get(s, "sifr.packing"))) return SIFR_OK;
    return take(s, "dataloader_drop_last", "dataloader_drop_last", json_true(),
                " (of packed rows)");
}

/* Rows that are too long are left out there, unless they are to be cut. */
sifr_status import_axolotl_long(import_state *s) {
    static const char *const key = "excess_length_strategy", *const to = "sifr.drop_long_rows";
    json_t *value = json_object_get(s->source, key);
    const char *word = json_string_value(value);
    if (!import_get(s, "sifr.dataset")) return SIFR_OK;
    if (!import_is_given(value)) return take_as(s, key, "drop", to, json_true(), "");
    if (word && strcmp(word, "truncate") == 0) {
        import_say_idle(s, key, value, "a row is cut at its end");
        return SIFR_OK;
    }
    if (!word || strcmp(word, "drop") != 0)
        return import_refuse(s, key, value, "rows that are too long are cut, or left out");
    import_say_kept(s, key, value, to);
    return import_put(s, to, json_true());
}

/* --- the programs built on the Trainer --- */

/* Without an optimizer of the DeepSpeed config, which has its own rate. */
static sifr_status take_rate(import_state *s, double rate) {
    if (is_number(s, "optimizer.params.lr")) return SIFR_OK;
    return take(s, "learning_rate", "sifr.learning_rate", json_real(rate), "");
}

static sifr_status instruct_defaults(import_state *s) {
    bool counted = json_integer_value(import_get(s, "sifr.max_steps")) > 0;
    BASE_TRY(take_rate(s, 2e-5));
    if (!counted)
        BASE_TRY(take(s, "num_train_epochs", "sifr.num_train_epochs", json_integer(2), ""));
    BASE_TRY(take(s, "clip_grad_norm", "gradient_clipping", json_integer(0), ""));
    if (has_warmup(s)) return SIFR_OK;
    return take(s, "warmup_ratio", "sifr.warmup_ratio", json_real(0.03), "");
}

/* Of TRL 1: SFT, or preferences, which begin at a smaller rate. */
static sifr_status trl_defaults(import_state *s) {
    bool prefers = import_trl_prefers(s);
    BASE_TRY(import_ignore_as_trl(s));
    BASE_TRY(take_rate(s, prefers ? 1e-6 : 2e-5));
    if (!prefers)
        BASE_TRY(take(s, "completion_only_loss", "sifr.train_on", json_string("completion"),
                      ", and all of messages"));
    if (!json_object_get(s->source, "max_length")) /* null: rows are not cut */
        BASE_TRY(take(s, "max_length", "sifr.seq_length", json_integer(1024), ""));
    return take_bf16(s);
}

sifr_status import_trainer_defaults(import_state *s) {
    if (s->kind == &import_factory) BASE_TRY(import_factory_eval(s));
    if (s->kind == &import_factory)
        return take(s, "cutoff_len", "sifr.seq_length", json_integer(2048), "");
    if (s->kind == &import_instruct) return instruct_defaults(s);
    return s->kind == &import_trl ? trl_defaults(s) : SIFR_OK;
}
