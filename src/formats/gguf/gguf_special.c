/* Special tokens and the chat template: SpecialVocab of the `gguf` package, rule by rule. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder_file.h"
#include "base/heap.h"
#include "formats/folder.h"
#include "formats/gguf/gguf_vocab.h"
#include "text/tokenizer/tokenizer.h"

enum { TEMPLATE_LIMIT = 1 << 24 };

typedef enum special_kind { BOS, EOS, UNK, SEP, PAD, CLS, MASK, EOT, EOM, SPECIALS } special_kind;

static const struct {
    const char *name;
    const char *key; /* NULL: GGUF has none */
} kinds[SPECIALS] = {
    [BOS] = {"bos", "tokenizer.ggml.bos_token_id"},
    [EOS] = {"eos", "tokenizer.ggml.eos_token_id"},
    [UNK] = {"unk", "tokenizer.ggml.unknown_token_id"},
    [SEP] = {"sep", "tokenizer.ggml.seperator_token_id"},
    [PAD] = {"pad", "tokenizer.ggml.padding_token_id"},
    [CLS] = {"cls", NULL},
    [MASK] = {"mask", "tokenizer.ggml.mask_token_id"},
    [EOT] = {"eot", "tokenizer.ggml.eot_token_id"},
    [EOM] = {"eom", "tokenizer.ggml.eom_token_id"},
};

/* Whether a text gets the token: not said, no, yes. */
typedef enum special_add { UNSAID = -1, NO, YES } special_add;

typedef struct gguf_special {
    const formats_gguf_files *files;
    json_t *config; /* a copy of tokenizer_config.json that is changed; NULL: not there */
    int64_t vocabulary;
    int64_t ids[SPECIALS]; /* -1: none */
    special_add add[SPECIALS];
    bool used[SPECIALS];
    json_t *first_last[4]; /* bos, cls, eos, sep: as they stand; NULL: none */
} gguf_special;

enum { AT_BOS, AT_CLS, AT_EOS, AT_SEP };

/* Python's truth of a token's entry. */
static bool given(const json_t *value) {
    if (!value || json_is_null(value) || json_is_false(value)) return false;
    if (json_is_string(value)) return json_string_length(value) > 0;
    return !json_is_object(value) || json_object_size(value) > 0;
}

static bool same(const json_t *a, const json_t *b) {
    return a && b && json_equal(a, b);
}

static void set(gguf_special *s, const char *key, json_t *value) {
    if (s->config) json_object_set(s->config, key, value);
}

static json_t *special_of(const json_t *entry) {
    json_t *id = json_object_get(json_object_get(entry, "SpecialToken"), "id");
    return given(id) ? id : NULL;
}

static void read_roberta(gguf_special *s, const json_t *processor) {
    json_t **at = s->first_last;
    s->add[BOS] = s->add[EOS] = s->add[SEP] = YES;
    json_t *cls = json_array_get(json_object_get(processor, "cls"), 0),
           *sep = json_array_get(json_object_get(processor, "sep"), 0);
    if (!given(at[AT_CLS]) && s->config) set(s, "cls_token", at[AT_CLS] = cls ? cls : at[AT_BOS]);
    if (!given(at[AT_SEP]) && s->config) set(s, "sep_token", at[AT_SEP] = sep ? sep : at[AT_EOS]);
}

static void read_first(gguf_special *s, json_t *first) {
    json_t **at = s->first_last;
    if (!s->config) {
        at[AT_BOS] = first;
    } else if (!same(first, at[AT_BOS]) && !same(first, at[AT_CLS])) {
        if (!given(at[AT_BOS])) set(s, "bos_token", at[AT_BOS] = first);
        if (!given(at[AT_CLS])) set(s, "cls_token", at[AT_CLS] = first);
    }
    s->add[BOS] = same(first, at[AT_BOS]) || same(first, at[AT_CLS]) ? YES : NO;
}

static void read_last(gguf_special *s, json_t *last) {
    json_t **at = s->first_last;
    if (!s->config) {
        at[AT_EOS] = last;
    } else if (!same(last, at[AT_EOS])) {
        /* The end of sequence that the file names becomes the end of a turn. */
        special_kind spare = !s->used[EOT] ? EOT : EOM;
        if (!s->used[spare]) {
            s->used[spare] = true;
            set(s, spare == EOT ? "eot_token" : "eom_token", at[AT_EOS] ? at[AT_EOS] : json_null());
        }
        set(s, "eos_token", at[AT_EOS] = last);
    }
    s->add[EOS] = same(last, at[AT_EOS]) ? YES : NO;
}

static const char *sequence_of(const json_t *entry) {
    const char *id = json_string_value(json_object_get(json_object_get(entry, "Sequence"), "id"));
    return id ? id : "";
}

/* Whether a separator stands between the two texts of a pair. */
static void read_pair(gguf_special *s, const json_t *pair, const json_t *first,
                      const json_t *last) {
    json_t **at = s->first_last;
    size_t begin = 0, end = json_array_size(pair);
    if (first && end && same(special_of(json_array_get(pair, 0)), first)) begin++;
    if (last && end && same(special_of(json_array_get(pair, end - 1)), last)) end--;
    if (end <= begin + 2) return;
    if (strcmp(sequence_of(json_array_get(pair, begin)), "A") != 0 ||
        strcmp(sequence_of(json_array_get(pair, end - 1)), "B") != 0)
        return;
    size_t middle = end - begin - 2;
    const json_t *one = special_of(json_array_get(pair, begin + 1)),
                 *two = middle == 2 ? special_of(json_array_get(pair, begin + 2)) : NULL;
    bool separates = one && !last && (same(one, at[AT_SEP]) || same(one, at[AT_EOS]));
    separates |= two && (same(two, at[AT_SEP]) || same(two, at[AT_EOS]));
    s->add[SEP] = separates ? YES : NO;
    if (separates && !given(at[AT_SEP]) && s->config)
        set(s, "sep_token", at[AT_EOS] ? at[AT_EOS] : json_null());
}

static void read_template(gguf_special *s, const json_t *processor) {
    const json_t *single = json_object_get(processor, "single"),
                 *pair = json_object_get(processor, "pair");
    json_t *first = NULL, *last = NULL;
    size_t count = json_array_size(single);
    if (count > 1) {
        first = special_of(json_array_get(single, 0));
        last = special_of(json_array_get(single, count - 1));
        if (first) read_first(s, first);
        if (last) read_last(s, last);
    }
    read_pair(s, pair, first, last);
}

static void read_processor(gguf_special *s, const json_t *processor) {
    const char *type = json_string_value(json_object_get(processor, "type"));
    if (!type) return;
    if (!strcmp(type, "ByteLevel")) {
        if (s->add[BOS] == UNSAID) s->add[BOS] = NO;
        if (s->add[EOS] == UNSAID) s->add[EOS] = NO;
    } else if (!strcmp(type, "RobertaProcessing")) {
        read_roberta(s, processor);
    } else if (!strcmp(type, "TemplateProcessing")) {
        read_template(s, processor);
    }
}

static void read_post_processor(gguf_special *s) {
    json_t **at = s->first_last;
    const json_t *post = json_object_get(s->files->tokenizer, "post_processor"), *one;
    size_t i;
    at[AT_BOS] = json_object_get(s->config, "bos_token");
    at[AT_CLS] = json_object_get(s->config, "cls_token");
    at[AT_EOS] = json_object_get(s->config, "eos_token");
    at[AT_SEP] = json_object_get(s->config, "sep_token");
    if (!given(at[AT_BOS]) && given(at[AT_CLS])) set(s, "bos_token", at[AT_BOS] = at[AT_CLS]);
    if (!given(at[AT_EOS]) && given(at[AT_SEP])) set(s, "eos_token", at[AT_EOS] = at[AT_SEP]);
    const json_t *list = json_object_get(post, "processors");
    if (!list) read_processor(s, post);
    json_array_foreach(list, i, one) read_processor(s, one);
}

static void set_id(gguf_special *s, special_kind kind, const json_t *id) {
    if (!json_is_integer(id) || s->ids[kind] >= 0) return;
    json_int_t value = json_integer_value(id);
    if (value >= 0 && value <= INT32_MAX && (s->vocabulary < 0 || value < s->vocabulary))
        s->ids[kind] = value;
}

/* The id of an added token by its text. */
static const json_t *added_id(const gguf_special *s, const char *content) {
    const json_t *added = json_object_get(s->files->tokenizer, "added_tokens"), *one;
    size_t i;
    json_array_foreach(added, i, one) {
        const char *text = json_string_value(json_object_get(one, "content"));
        if (text && strcmp(text, content) == 0) return json_object_get(one, "id");
    }
    return NULL;
}

static void read_config(gguf_special *s, special_kind kind) {
    char key[32];
    snprintf(key, sizeof key, "add_%s_token", kinds[kind].name);
    const json_t *add = json_object_get(s->config, key);
    if (json_is_boolean(add) && s->add[kind] == UNSAID) s->add[kind] = json_is_true(add) ? YES : NO;
    snprintf(key, sizeof key, "%s_token", kinds[kind].name);
    const json_t *entry = json_object_get(s->config, key);
    if (json_is_object(entry)) entry = json_object_get(entry, "content");
    if (json_is_string(entry)) set_id(s, kind, added_id(s, json_string_value(entry)));
}

/* --- chat templates --- */

/* Letters and digits of a template's name, "_" for other characters; false where it has none. */
static bool template_name(const json_t *choice, char *out, size_t capacity) {
    const char *from = json_string_value(json_object_get(choice, "name"));
    size_t size = 0;
    if (!from || !json_is_string(json_object_get(choice, "template"))) return false;
    for (; *from && size + 1 < capacity; from++) {
        bool plain = (*from >= 'a' && *from <= 'z') || (*from >= 'A' && *from <= 'Z') ||
                     (*from >= '0' && *from <= '9');
        if (((unsigned char)*from & 0xc0) != 0x80) out[size++] = plain ? *from : '_';
    }
    out[size] = 0;
    return size > 0;
}

static void add_template_list(formats_gguf_meta *meta, const json_t *list) {
    enum { NAME = 128 };
    char name[NAME], key[NAME + 32];
    const json_t *choice, *text;
    uint64_t named = 0;
    size_t i;
    json_array_foreach(list, i, choice) {
        if (!template_name(choice, name, NAME)) continue;
        bool main = strcmp(name, "default") == 0;
        snprintf(key, sizeof key, "tokenizer.chat_template%s%s", main ? "" : ".", main ? "" : name);
        text = json_object_get(choice, "template");
        formats_gguf_add_text(meta, key, json_string_value(text), json_string_length(text));
        named += !main;
    }
    if (!named) return;
    formats_gguf_add_array(meta, "tokenizer.chat_templates", FORMATS_GGUF_TEXT, named);
    json_array_foreach(list, i, choice) {
        if (template_name(choice, name, NAME) && strcmp(name, "default") != 0)
            formats_gguf_item_text(meta, name, strlen(name));
    }
}

/* chat_template.jinja, where tokenizer_config.json has no template. */
static sifr_status add_template_file(const gguf_special *s, formats_gguf_meta *meta,
                                     sifr_error *error) {
    static const char name[] = "chat_template.jinja";
    char path[BASE_PATH_LENGTH], *text;
    size_t size;
    BASE_TRY(base_path_join(path, s->files->folder, name, error));
    if (!base_is_file(path)) return SIFR_OK;
    BASE_TRY(base_folder_file(s->files->folder, name, path, error));
    BASE_TRY(base_read_file(path, TEMPLATE_LIMIT, &text, &size, error));
    const char *nul = memchr(text, 0, size);
    sifr_status status = SIFR_OK;
    if (nul)
        status = base_fail(error, SIFR_USAGE,
                           "%s: a NUL behind %zu bytes, where llama.cpp would end the template; "
                           "take it out",
                           path, (size_t)(nul - text));
    else
        formats_gguf_add_text(meta, "tokenizer.chat_template", text, size);
    free(text);
    return status;
}

static sifr_status add_templates(const gguf_special *s, formats_gguf_meta *meta,
                                 sifr_error *error) {
    const json_t *template = json_object_get(s->config, "chat_template");
    if (!s->config) return SIFR_OK;
    if (!template) return add_template_file(s, meta, error);
    if (json_is_string(template))
        formats_gguf_add_text(meta, "tokenizer.chat_template", json_string_value(template),
                              json_string_length(template));
    else
        add_template_list(meta, template);
    return SIFR_OK;
}

/* --- normalizers --- */

static void read_normalizer(const json_t *normalizer, int depth, special_add *lower,
                            special_add *strip) {
    const char *type = json_string_value(json_object_get(normalizer, "type"));
    const json_t *value, *list = json_object_get(normalizer, "normalizers");
    size_t i;
    if (!type || depth == 0) return;
    if (!strcmp(type, "Lowercase")) *lower = YES;
    if (!strcmp(type, "StripAccents")) *strip = YES;
    if (!strcmp(type, "BertNormalizer")) {
        value = json_object_get(normalizer, "lowercase");
        if (json_is_boolean(value)) *lower = json_is_true(value) ? YES : NO;
        value = json_object_get(normalizer, "strip_accents");
        if (json_is_boolean(value)) *strip = json_is_true(value) ? YES : NO;
    }
    if (!strcmp(type, "Sequence"))
        json_array_foreach(list, i, value) read_normalizer(value, depth - 1, lower, strip);
}

static void add_normalizers(const gguf_special *s, formats_gguf_meta *meta) {
    enum { DEPTH = 8 };
    special_add lower = UNSAID, strip = UNSAID;
    read_normalizer(json_object_get(s->files->tokenizer, "normalizer"), DEPTH, &lower, &strip);
    if (lower != UNSAID)
        formats_gguf_add_bool(meta, "tokenizer.ggml.normalizer.lowercase", lower == YES);
    if (strip != UNSAID)
        formats_gguf_add_bool(meta, "tokenizer.ggml.normalizer.strip_accents", strip == YES);
}

/* GLM-4's own, where the files name none. */
static void read_glm(gguf_special *s, special_kind kind) {
    const char *text = kind == EOT                                 ? "<|user|>"
                       : kind == BOS || kind == EOS || kind == UNK ? "<|endoftext|>"
                                                                   : NULL;
    if (text) set_id(s, kind, added_id(s, text));
}

/* What the tokenizer puts there decides, whatever the keys say: *add. */
static void settle(const gguf_special *s, const text_tokenizer *tokenizer, bool behind,
                   bool fallback, const sifr_log *log, special_add *add) {
    size_t count;
    const int32_t *ids = text_tokenizer_around(tokenizer, behind, &count);
    int64_t token = s->ids[behind ? EOS : BOS];
    bool one = count == 1 && ids[0] == token;
    if (count == 0 || one) {
        bool theirs = *add == UNSAID ? fallback : *add == YES;
        if (theirs != one) *add = one ? YES : NO;
        return;
    }
    base_log(log, SIFR_LOG_WARNING,
             "%s: this tokenizer puts %zu tokens %s a text; llama.cpp has one or none, so they "
             "must be in the text there",
             s->files->folder, count, behind ? "behind" : "before");
}

static sifr_status settle_ends(gguf_special *s, formats_gguf_special_rules rules,
                               sifr_error *error) {
    text_tokenizer *tokenizer;
    if (rules.no_bos) s->add[BOS] = NO;
    BASE_TRY(text_tokenizer_load(s->files->folder, &tokenizer, error));
    settle(s, tokenizer, false, rules.bos_default, rules.log, &s->add[BOS]);
    settle(s, tokenizer, true, false, rules.log, &s->add[EOS]);
    size_t count;
    const int32_t *ids = text_tokenizer_around(tokenizer, false, &count);
    bool one = count == 1 && ids[0] == s->ids[BOS];
    text_tokenizer_free(tokenizer);
    if (!rules.bos) return SIFR_OK;
    s->add[BOS] = YES;
    if (one) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: this tokenizer puts no \"bos_token\" before a text; llama.cpp puts it "
                     "there for every gemma4, so --format gguf cannot carry it",
                     s->files->folder);
}

static void add_ends(const gguf_special *s, formats_gguf_meta *meta) {
    static const char *const keys[] = {[BOS] = "tokenizer.ggml.add_bos_token",
                                       [EOS] = "tokenizer.ggml.add_eos_token",
                                       [UNK] = NULL,
                                       [SEP] = "tokenizer.ggml.add_sep_token"};
    for (special_kind k = BOS; k <= SEP; k++) {
        if (keys[k] && s->add[k] != UNSAID) formats_gguf_add_bool(meta, keys[k], s->add[k] == YES);
    }
}

sifr_status formats_gguf_special(const formats_gguf_files *files, formats_gguf_special_rules rules,
                                 formats_gguf_meta *meta, sifr_error *error) {
    gguf_special s = {.files = files, .vocabulary = rules.vocabulary};
    if (files->tokenizer_config) {
        s.config = json_deep_copy(files->tokenizer_config);
        if (!s.config) return base_fail_alloc(error, 1);
    }
    for (int k = 0; k < SPECIALS; k++) {
        s.ids[k] = -1;
        s.add[k] = UNSAID;
        s.used[k] = k != EOT && k != EOM;
    }
    if (files->tokenizer) read_post_processor(&s);
    for (special_kind k = 0; k < SPECIALS; k++) {
        char key[32];
        if (!s.used[k] && !rules.glm) continue;
        if (s.config && s.used[k]) read_config(&s, k);
        snprintf(key, sizeof key, "%s_token_id", kinds[k].name);
        if (s.used[k]) set_id(&s, k, json_object_get(files->config, key));
        if (rules.glm) read_glm(&s, k);
        if (s.ids[k] >= 0 && kinds[k].key)
            formats_gguf_add_u32(meta, kinds[k].key, (uint32_t)s.ids[k]);
    }
    sifr_status status = settle_ends(&s, rules, error);
    add_ends(&s, meta);
    if (status == SIFR_OK) status = add_templates(&s, meta, error);
    add_normalizers(&s, meta);
    json_decref(s.config);
    return status;
}
