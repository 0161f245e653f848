/* From "pre_tokenizer" of a tokenizer.json to steps. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_internal.h"
#include "text/tokenizer/tokenizer_pretokenizer.h"

static sifr_status read_behavior(const json_t *part, const char *fallback, const char *name,
                                 text_split_behavior *out, sifr_error *error) {
    static const char *const names[] = {"Removed", "Isolated", "Contiguous", "MergedWithPrevious",
                                        "MergedWithNext"};
    const char *text;
    BASE_TRY(base_json_string(part, "behavior", fallback, &text, name, error));
    for (int i = 0; i < 5; i++) {
        if (text && strcmp(text, names[i]) == 0) {
            *out = (text_split_behavior)i;
            return SIFR_OK;
        }
    }
    return text_tokenizer_refuse(error, name, "pre_tokenizer behavior", text ? text : "(none)",
                                 "Removed, Isolated, Contiguous, MergedWithPrevious, "
                                 "MergedWithNext");
}

static sifr_status read_character(const json_t *part, const char *key, const char *name,
                                  uint32_t *out, sifr_error *error) {
    const char *text;
    size_t length = 0;
    BASE_TRY(base_json_string(part, key, "", &text, name, error));
    if (*text) *out = text_utf8_get((const uint8_t *)text, &length);
    if (!*text || text[length])
        return base_fail(error, SIFR_USAGE, "%s: \"%s\" must be one character, not \"%.40s\"", name,
                         key, text);
    return SIFR_OK;
}

sifr_status text_metaspace_read(const json_t *part, const char *name, uint32_t *character,
                                text_prepend *prepend, sifr_error *error) {
    const char *scheme;
    bool prefix;
    BASE_TRY(read_character(part, "replacement", name, character, error));
    BASE_TRY(base_json_bool(part, "add_prefix_space", true, &prefix, name, error));
    BASE_TRY(base_json_string(part, "prepend_scheme", prefix ? "always" : "never", &scheme, name,
                              error));
    static const char *const names[] = {"always", "first", "never"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(scheme, names[i]) == 0) {
            *prepend = (text_prepend)i;
            return SIFR_OK;
        }
    }
    return text_tokenizer_refuse(error, name, "Metaspace prepend_scheme", scheme,
                                 "always, first, never");
}

/* A pattern that has a scanner of its own, and a behavior that keeps every piece. */
static int known_split(const text_pretokenizer_step *step) {
    const char *pattern = text_regex_pattern(step->regex);
    if (!(step->behavior == TEXT_ISOLATED || (step->behavior == TEXT_REMOVED && step->invert)))
        return -1;
    for (int kind = TEXT_SPLIT_GPT2; kind <= TEXT_SPLIT_QWEN2; kind++) {
        if (strcmp(pattern, text_split_regex((text_split_kind)kind)) == 0) return kind;
    }
    return -1;
}

static sifr_status read_step(text_pretokenizer_step *step, const json_t *part, const char *name,
                             sifr_error *error) {
    bool individual;
    switch (step->kind) {
    case TEXT_PRETOKENIZER_BYTES:
        BASE_TRY(base_json_bool(part, "add_prefix_space", true, &step->prefix_space, name, error));
        return base_json_bool(part, "use_regex", true, &step->splits, name, error);
    case TEXT_PRETOKENIZER_PUNCTUATION:
        return read_behavior(part, "Isolated", name, &step->behavior, error);
    case TEXT_PRETOKENIZER_DIGITS:
        BASE_TRY(base_json_bool(part, "individual_digits", false, &individual, name, error));
        step->behavior = individual ? TEXT_ISOLATED : TEXT_CONTIGUOUS;
        return SIFR_OK;
    case TEXT_PRETOKENIZER_SPLIT:
        BASE_TRY(text_pattern_read(part, name, &step->regex, NULL, error));
        BASE_TRY(base_json_bool(part, "invert", false, &step->invert, name, error));
        BASE_TRY(read_behavior(part, NULL, name, &step->behavior, error));
        step->known = known_split(step);
        return SIFR_OK;
    case TEXT_PRETOKENIZER_METASPACE:
        step->behavior = TEXT_MERGED_WITH_NEXT;
        BASE_TRY(base_json_bool(part, "split", true, &step->splits, name, error));
        return text_metaspace_read(part, name, &step->character, &step->prepend, error);
    case TEXT_PRETOKENIZER_DELIMITER:
        return read_character(part, "delimiter", name, &step->character, error);
    default:
        return SIFR_OK;
    }
}

static const struct {
    const char *type;
    text_pretokenizer_kind kind;
} kinds[] = {
    {"ByteLevel", TEXT_PRETOKENIZER_BYTES},
    {"Whitespace", TEXT_PRETOKENIZER_WHITESPACE},
    {"WhitespaceSplit", TEXT_PRETOKENIZER_WHITESPACE_SPLIT},
    {"Punctuation", TEXT_PRETOKENIZER_PUNCTUATION},
    {"Digits", TEXT_PRETOKENIZER_DIGITS},
    {"Split", TEXT_PRETOKENIZER_SPLIT},
    {"Metaspace", TEXT_PRETOKENIZER_METASPACE},
    {"CharDelimiterSplit", TEXT_PRETOKENIZER_DELIMITER},
    {"BertPreTokenizer", TEXT_PRETOKENIZER_BERT},
};

sifr_status text_pretokenizer_read(text_pretokenizer *p, const json_t *part, const char *name,
                                   sifr_error *error) {
    const json_t *list[TEXT_STEPS_AT_MOST];
    size_t count, of = sizeof kinds / sizeof *kinds;
    BASE_TRY(
        text_tokenizer_flatten(part, "pre_tokenizer", "pretokenizers", name, list, &count, error));
    for (size_t i = 0; i < count; i++) {
        text_pretokenizer_step *step = &p->steps[i];
        const char *type = json_string_value(json_object_get(list[i], "type"));
        size_t k = 0;
        while (k < of && (!type || strcmp(type, kinds[k].type) != 0)) k++;
        if (k == of)
            return text_tokenizer_refuse(error, name, "pre_tokenizer", type ? type : "(no type)",
                                         "ByteLevel, Whitespace, WhitespaceSplit, Punctuation, "
                                         "Digits, Split, Metaspace, CharDelimiterSplit, "
                                         "BertPreTokenizer, Sequence");
        *step = (text_pretokenizer_step){.kind = kinds[k].kind, .known = -1};
        p->count = i + 1; /* what a step holds is freed also where reading it fails */
        BASE_TRY(read_step(step, list[i], name, error));
        bool writes =
            step->kind == TEXT_PRETOKENIZER_BYTES || step->kind == TEXT_PRETOKENIZER_METASPACE;
        if (p->bytes && writes)
            return text_tokenizer_refuse(error, name, "pre_tokenizer behind a ByteLevel", type,
                                         "steps that only split");
        if (step->kind == TEXT_PRETOKENIZER_BYTES) {
            p->bytes = true;
            step->in_alphabet = i + 1 < count;
        }
    }
    return SIFR_OK;
}

void text_pretokenizer_free(text_pretokenizer *pretokenizer) {
    for (size_t i = 0; i < pretokenizer->count; i++) text_regex_free(pretokenizer->steps[i].regex);
    pretokenizer->count = 0;
}
