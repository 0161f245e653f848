/* Normalizer, pre-tokenizer, decoder and the model's options; and whether the short way of
 * byte-level BPE does for them. */
#include <stdlib.h>

#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_internal.h"

sifr_status text_tokenizer_flatten(const json_t *part, const char *what, const char *key,
                                   const char *name, const json_t **list, size_t *count,
                                   sifr_error *error) {
    const json_t *levels[16];
    size_t places[16], level = 0;
    *count = 0;
    if (!part || json_is_null(part)) return SIFR_OK;
    for (;;) {
        const char *type = json_string_value(json_object_get(part, "type"));
        if (!json_is_object(part))
            return base_fail(error, SIFR_USAGE, "%s: %s must be an object or null", name, what);
        if (type && strcmp(type, "Sequence") == 0) {
            const json_t *members = json_object_get(part, key);
            if (!json_is_array(members) || level == 16)
                return base_fail(error, SIFR_USAGE, "%s: %s.%s must be an array of parts", name,
                                 what, key);
            levels[level] = members;
            places[level++] = 0;
        } else if (*count == TEXT_STEPS_AT_MOST) {
            return base_fail(error, SIFR_USAGE, "%s: %s has more than %d parts", name, what,
                             TEXT_STEPS_AT_MOST);
        } else {
            list[(*count)++] = part;
        }
        while (level && places[level - 1] == json_array_size(levels[level - 1])) level--;
        if (!level) return SIFR_OK;
        part = json_array_get(levels[level - 1], places[level - 1]++);
    }
}

static sifr_status read_bpe(text_tokenizer *t, const json_t *model, const char *name,
                            sifr_error *error) {
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const char *text;
    double dropout;
    t->model = t->pretokenizer.bytes ? TEXT_MODEL_BYTES : TEXT_MODEL_CHARACTERS;
    for (size_t i = 0; i < t->normalizer.count; i++) {
        if (t->normalizer.steps[i].kind == TEXT_NORMALIZER_BYTES) t->model = TEXT_MODEL_BYTES;
    }
    if (t->model == TEXT_MODEL_BYTES && !t->decoder.bytes && !t->decoder.none)
        return text_tokenizer_refuse(error, name, "decoder", "of another kind",
                                     "ByteLevel alone for byte-level BPE");
    BASE_TRY(base_json_double(model, "dropout", 0, &dropout, name, error));
    if (dropout != 0) return text_tokenizer_refuse(error, name, "model.dropout", "not 0", "0");
    for (size_t i = 0; i < 2; i++) {
        BASE_TRY(base_json_string(model, affixes[i], "", &text, name, error));
        if (*text && (t->model == TEXT_MODEL_BYTES || strlen(text) > 256))
            return text_tokenizer_refuse(error, name, affixes[i], text, "none");
        BASE_TRY(base_copy_text(text, strlen(text), i ? &t->suffix : &t->prefix, error));
    }
    BASE_TRY(base_json_bool(model, "byte_fallback", false, &t->byte_fallback, name, error));
    if (t->byte_fallback && t->model == TEXT_MODEL_BYTES)
        return text_tokenizer_refuse(error, name, "model.byte_fallback", "true",
                                     "false for byte-level BPE");
    BASE_TRY(base_json_bool(model, "ignore_merges", false, &t->ignore_merges, name, error));
    return base_json_bool(model, "fuse_unk", false, &t->fuse_unk, name, error);
}

static sifr_status read_model(text_tokenizer *t, const json_t *model, const char *name,
                              sifr_error *error) {
    const char *type;
    BASE_TRY(base_json_string(model, "type", NULL, &type, name, error));
    if (!type) { /* old files do not say it */
        if (json_object_get(model, "merges"))
            type = "BPE";
        else
            type = json_is_array(json_object_get(model, "vocab")) ? "Unigram" : "WordPiece";
    }
    if (strcmp(type, "WordPiece") == 0)
        t->model = TEXT_MODEL_WORDPIECE;
    else if (strcmp(type, "Unigram") == 0)
        t->model = TEXT_MODEL_UNIGRAM;
    else if (strcmp(type, "BPE") == 0)
        return read_bpe(t, model, name, error);
    else
        return text_tokenizer_refuse(error, name, "model", type, "BPE, WordPiece, Unigram");
    for (size_t i = 0; i < t->normalizer.count; i++) {
        if (t->normalizer.steps[i].kind == TEXT_NORMALIZER_BYTES) t->pretokenizer.bytes = true;
    }
    if (t->pretokenizer.bytes)
        return text_tokenizer_refuse(error, name, "pre_tokenizer with model", type,
                                     "ByteLevel with BPE");
    return SIFR_OK;
}

/* Sets what the short way goes by; false: a step is there that it does not know. */
static bool is_direct(text_tokenizer *t) {
    const text_pretokenizer *p = &t->pretokenizer;
    bool split = false;
    if (t->model != TEXT_MODEL_BYTES || !p->count) return false;
    for (size_t i = 0; i < t->normalizer.count; i++) {
        const text_normalizer_step *step = &t->normalizer.steps[i];
        if (step->kind != TEXT_NORMALIZER_FORM || step->form != TEXT_NFC) return false;
    }
    t->split = TEXT_SPLIT_GPT2;
    for (size_t i = 0; i + 1 < p->count; i++) {
        const text_pretokenizer_step *step = &p->steps[i];
        if (step->kind == TEXT_PRETOKENIZER_DIGITS && step->behavior == TEXT_ISOLATED && i == 0) {
            t->digits = true;
        } else if (step->kind == TEXT_PRETOKENIZER_SPLIT && step->known >= 0 && !split) {
            t->split = (text_split_kind)step->known;
            split = true;
        } else {
            return false;
        }
    }
    const text_pretokenizer_step *last = &p->steps[p->count - 1];
    if (last->kind != TEXT_PRETOKENIZER_BYTES || last->splits == split) return false;
    t->prefix_space = last->prefix_space;
    return !(t->prefix_space && p->count > 1);
}

/* Whether what a text begins with stays: the library's "first" asks where the first character that
 * is left stood in the text. */
static bool keeps_beginning(const text_normalizer *normalizer) {
    for (size_t i = 0; i < normalizer->count; i++) {
        const text_normalizer_step *step = &normalizer->steps[i];
        bool one = step->kind == TEXT_NORMALIZER_REPLACE && step->from && step->from_size == 1 &&
                   step->to_size > 0;
        if (step->kind != TEXT_NORMALIZER_FORM && step->kind != TEXT_NORMALIZER_LOWERCASE &&
            step->kind != TEXT_NORMALIZER_PREPEND && !one)
            return false;
    }
    return true;
}

static sifr_status check_first(const text_tokenizer *t, const char *name, sifr_error *error) {
    for (size_t i = 0; i < t->pretokenizer.count; i++) {
        const text_pretokenizer_step *step = &t->pretokenizer.steps[i];
        if (step->kind == TEXT_PRETOKENIZER_METASPACE && step->prepend == TEXT_PREPEND_FIRST &&
            !keeps_beginning(&t->normalizer))
            return text_tokenizer_refuse(error, name, "pre_tokenizer Metaspace with prepend_scheme",
                                         "first",
                                         "always and never behind a normalizer that may take "
                                         "away what a text begins with");
    }
    return SIFR_OK;
}

sifr_status text_tokenizer_read_parts(text_tokenizer *t, const json_t *root, const char *name,
                                      sifr_error *error) {
    BASE_TRY(
        text_normalizer_read(&t->normalizer, json_object_get(root, "normalizer"), name, error));
    BASE_TRY(text_pretokenizer_read(&t->pretokenizer, json_object_get(root, "pre_tokenizer"), name,
                                    error));
    BASE_TRY(text_decoder_read(&t->decoder, json_object_get(root, "decoder"), name, error));
    BASE_TRY(read_model(t, json_object_get(root, "model"), name, error));
    BASE_TRY(check_first(t, name, error));
    t->direct = is_direct(t);
    for (size_t i = 0; i < t->pretokenizer.count; i++)
        t->in_alphabet |= t->pretokenizer.steps[i].in_alphabet;
    for (size_t i = 0; i < t->normalizer.count; i++) {
        text_normalizer_kind kind = t->normalizer.steps[i].kind;
        if (kind == TEXT_NORMALIZER_BYTES && (t->in_alphabet || t->pretokenizer.bytes))
            return text_tokenizer_refuse(error, name, "normalizer", "ByteLevel twice", "once");
        t->in_alphabet |= kind == TEXT_NORMALIZER_BYTES;
        t->unicode.normalizes |= kind == TEXT_NORMALIZER_FORM || kind == TEXT_NORMALIZER_BERT;
    }
    return SIFR_OK;
}
