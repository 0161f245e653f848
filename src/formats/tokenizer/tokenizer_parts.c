/* Normalizer, pre-tokenizer, post-processor, decoder and the model's options: which kinds are
 * built, and the refusal of all others by name. */
#include <stdlib.h>

#include "base/heap.h"
#include "base/json.h"
#include "formats/tokenizer/tokenizer_internal.h"

#define PIECES_AT_MOST 16

static const char *type_of(const json_t *part) {
    const char *type = json_string_value(json_object_get(part, "type"));
    return type ? type : "(without a type)";
}

/* `part`, or the members of a Sequence under `key`, into list[PIECES_AT_MOST]. */
static sifr_status flatten(const json_t *part, const char *what, const char *key, const char *name,
                           const json_t **list, size_t *count, sifr_error *error) {
    *count = 0;
    if (!part || json_is_null(part)) return SIFR_OK;
    if (!json_is_object(part))
        return base_fail(error, SIFR_USAGE, "%s: %s must be an object or null", name, what);
    if (strcmp(type_of(part), "Sequence") != 0) {
        list[(*count)++] = part;
        return SIFR_OK;
    }
    const json_t *members = json_object_get(part, key);
    if (!json_is_array(members) || json_array_size(members) > PIECES_AT_MOST)
        return base_fail(error, SIFR_USAGE, "%s: %s.%s must be an array of at most %d parts", name,
                         what, key, PIECES_AT_MOST);
    for (; *count < json_array_size(members); (*count)++)
        list[*count] = json_array_get(members, *count);
    return SIFR_OK;
}

static sifr_status read_normalizer(formats_tokenizer *t, const json_t *part, const char *name,
                                   sifr_error *error) {
    const json_t *list[PIECES_AT_MOST];
    size_t count;
    BASE_TRY(flatten(part, "normalizer", "normalizers", name, list, &count, error));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(type_of(list[i]), "NFC") != 0)
            return formats_tokenizer_refuse(error, name, "normalizer", type_of(list[i]), "NFC");
        t->unicode.normalizes = true;
    }
    return SIFR_OK;
}

/* {"type": "Split", "pattern": {"Regex": …}, "behavior": …, "invert": …}: the patterns match all of
 * a text, so that Isolated, and Removed of what does not match, are the same. */
static sifr_status read_split(formats_tokenizer *t, const json_t *part, const char *name,
                              sifr_error *error) {
    const char *regex =
        json_string_value(json_object_get(json_object_get(part, "pattern"), "Regex"));
    const char *behavior = json_string_value(json_object_get(part, "behavior"));
    bool invert;
    BASE_TRY(base_json_bool(part, "invert", false, &invert, name, error));
    if (!behavior || strcmp(behavior, invert ? "Removed" : "Isolated") != 0)
        return formats_tokenizer_refuse(error, name, "pre_tokenizer Split with behavior",
                                        behavior ? behavior : "(none)",
                                        "Isolated, and Removed with invert");
    for (int kind = FORMATS_SPLIT_LLAMA3; kind <= FORMATS_SPLIT_QWEN2; kind++) {
        if (regex && strcmp(regex, formats_split_pattern((formats_split_kind)kind)) == 0) {
            t->split = (formats_split_kind)kind;
            return SIFR_OK;
        }
    }
    return formats_tokenizer_refuse(error, name, "pre_tokenizer Split by",
                                    regex ? regex : "(no Regex)",
                                    "the patterns of GPT-2 (ByteLevel), Llama 3 and Qwen2");
}

static sifr_status read_pre_tokenizer(formats_tokenizer *t, const json_t *part, const char *name,
                                      sifr_error *error) {
    const json_t *list[PIECES_AT_MOST];
    size_t count;
    bool split = false, bytes = false;
    BASE_TRY(flatten(part, "pre_tokenizer", "pretokenizers", name, list, &count, error));
    for (size_t i = 0; i < count; i++) {
        const char *type = type_of(list[i]);
        bool yes;
        if (strcmp(type, "Split") == 0 && !split && !bytes && !t->digits) {
            BASE_TRY(read_split(t, list[i], name, error));
            split = true;
        } else if (strcmp(type, "Digits") == 0 && !split && !bytes) {
            BASE_TRY(base_json_bool(list[i], "individual_digits", false, &yes, name, error));
            if (!yes)
                return formats_tokenizer_refuse(error, name, "pre_tokenizer Digits with",
                                                "individual_digits: false", "true");
            t->digits = true;
        } else if (strcmp(type, "ByteLevel") == 0 && !bytes) {
            bytes = true;
            BASE_TRY(
                base_json_bool(list[i], "add_prefix_space", true, &t->prefix_space, name, error));
            BASE_TRY(base_json_bool(list[i], "use_regex", true, &yes, name, error));
            if (yes == split)
                return formats_tokenizer_refuse(
                    error, name, "pre_tokenizer ByteLevel with use_regex", yes ? "true" : "false",
                    "true without a Split before it, false with one");
            if (t->prefix_space && (split || t->digits))
                return formats_tokenizer_refuse(error, name, "pre_tokenizer ByteLevel after",
                                                split ? "Split" : "Digits",
                                                "one with add_prefix_space false");
        } else {
            return formats_tokenizer_refuse(error, name, "pre_tokenizer", type,
                                            "ByteLevel, Split and ByteLevel, Digits and ByteLevel");
        }
    }
    if (!bytes)
        return formats_tokenizer_refuse(error, name, "pre_tokenizer", "(without ByteLevel)",
                                        "byte-level BPE");
    return SIFR_OK;
}

static sifr_status read_decoder(const json_t *part, const char *name, sifr_error *error) {
    const json_t *list[PIECES_AT_MOST];
    size_t count;
    BASE_TRY(flatten(part, "decoder", "decoders", name, list, &count, error));
    if (count == 1 && strcmp(type_of(list[0]), "ByteLevel") == 0) return SIFR_OK;
    if (count == 0) return SIFR_OK; /* the bytes are what byte-level tokens stand for */
    return formats_tokenizer_refuse(error, name, "decoder", type_of(list[0]), "ByteLevel alone");
}

static sifr_status read_model(formats_tokenizer *t, const json_t *model, const char *name,
                              sifr_error *error) {
    const char *type, *text;
    double dropout;
    bool fallback;
    BASE_TRY(base_json_string(model, "type", NULL, &type, name, error));
    if (!type) { /* old files do not say it */
        if (json_object_get(model, "merges"))
            type = "BPE";
        else
            type = json_is_array(json_object_get(model, "vocab")) ? "Unigram" : "WordPiece";
    }
    if (strcmp(type, "BPE") != 0)
        return formats_tokenizer_refuse(error, name, "model", type, "BPE");
    BASE_TRY(base_json_double(model, "dropout", 0, &dropout, name, error));
    if (dropout != 0) return formats_tokenizer_refuse(error, name, "model.dropout", "not 0", "0");
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < 2; i++) {
        BASE_TRY(base_json_string(model, affixes[i], "", &text, name, error));
        if (*text) return formats_tokenizer_refuse(error, name, affixes[i], text, "none");
    }
    BASE_TRY(base_json_bool(model, "byte_fallback", false, &fallback, name, error));
    if (fallback)
        return formats_tokenizer_refuse(error, name, "model.byte_fallback", "true", "false");
    BASE_TRY(base_json_bool(model, "ignore_merges", false, &t->ignore_merges, name, error));
    return base_json_bool(model, "fuse_unk", false, &t->fuse_unk, name, error);
}

sifr_status formats_tokenizer_read_parts(formats_tokenizer *t, const json_t *root, const char *name,
                                         sifr_error *error) {
    BASE_TRY(read_model(t, json_object_get(root, "model"), name, error));
    BASE_TRY(read_normalizer(t, json_object_get(root, "normalizer"), name, error));
    BASE_TRY(read_pre_tokenizer(t, json_object_get(root, "pre_tokenizer"), name, error));
    return read_decoder(json_object_get(root, "decoder"), name, error);
}

static sifr_status append_id(int32_t **list, size_t *count, int64_t id, const formats_tokenizer *t,
                             const char *name, sifr_error *error) {
    size_t room = *count, size;
    if (id < 0 || id >= t->vocab_size || !formats_tokenizer_bytes(t, (int32_t)id, &size))
        return base_fail(error, SIFR_USAGE, "%s: post_processor: there is no token with id %lld",
                         name, (long long)id);
    BASE_TRY(base_grow(list, &room, *count + 1, sizeof **list, error));
    (*list)[(*count)++] = (int32_t)id;
    return SIFR_OK;
}

/* "single": [{"SpecialToken": {"id": NAME}} | {"Sequence": {"id": "A"}} …]; "special_tokens":
 * {NAME: {"ids": […]}}. */
static sifr_status read_template(formats_tokenizer *t, const json_t *post, const char *name,
                                 sifr_error *error) {
    const json_t *single = json_object_get(post, "single"), *piece, *id;
    size_t i, j, sequences = 0;
    if (!json_is_array(single))
        return base_fail(error, SIFR_USAGE, "%s: post_processor.single must be an array", name);
    json_array_foreach(single, i, piece) {
        const json_t *special = json_object_get(piece, "SpecialToken");
        const char *key = json_string_value(json_object_get(special, "id"));
        if (json_object_get(piece, "Sequence")) {
            sequences++;
            continue;
        }
        const json_t *ids =
            !key ? NULL
                 : json_object_get(json_object_get(json_object_get(post, "special_tokens"), key),
                                   "ids");
        if (!json_is_array(ids))
            return base_fail(error, SIFR_USAGE,
                             "%s: post_processor.single[%zu] names no known special token", name,
                             i);
        json_array_foreach(ids, j, id) {
            int64_t value = json_is_integer(id) ? json_integer_value(id) : -1;
            if (sequences)
                BASE_TRY(append_id(&t->after, &t->after_count, value, t, name, error));
            else
                BASE_TRY(append_id(&t->before, &t->before_count, value, t, name, error));
        }
    }
    if (sequences != 1)
        return base_fail(error, SIFR_USAGE,
                         "%s: post_processor.single must have one Sequence, not %zu", name,
                         sequences);
    return SIFR_OK;
}

sifr_status formats_tokenizer_read_post(formats_tokenizer *t, const json_t *post, const char *name,
                                        sifr_error *error) {
    const json_t *list[PIECES_AT_MOST];
    size_t count;
    bool seen = false;
    BASE_TRY(flatten(post, "post_processor", "processors", name, list, &count, error));
    for (size_t i = 0; i < count; i++) {
        const char *type = type_of(list[i]);
        if (strcmp(type, "ByteLevel") == 0) continue; /* only offsets into the text */
        if (strcmp(type, "TemplateProcessing") == 0 && !seen) {
            BASE_TRY(read_template(t, list[i], name, error));
        } else if ((strcmp(type, "RobertaProcessing") == 0 ||
                    strcmp(type, "BertProcessing") == 0) &&
                   !seen) {
            const json_t *id = json_array_get(json_object_get(list[i], "cls"), 1);
            BASE_TRY(append_id(&t->before, &t->before_count,
                               json_is_integer(id) ? json_integer_value(id) : -1, t, name, error));
            id = json_array_get(json_object_get(list[i], "sep"), 1);
            BASE_TRY(append_id(&t->after, &t->after_count,
                               json_is_integer(id) ? json_integer_value(id) : -1, t, name, error));
        } else {
            return formats_tokenizer_refuse(error, name, "post_processor", type,
                                            "ByteLevel and one of TemplateProcessing, "
                                            "RobertaProcessing, BertProcessing");
        }
        seen = true;
    }
    return SIFR_OK;
}
