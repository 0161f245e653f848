#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "formats/tokenizer/tokenizer_internal.h"

enum { FILE_LIMIT = 256 << 20 };

sifr_status formats_tokenizer_refuse(sifr_error *error, const char *name, const char *part,
                                     const char *got, const char *wanted) {
    return base_fail(error, SIFR_USAGE, "%s: %s \"%.100s\" is not supported yet (supported: %s)",
                     name, part, got, wanted);
}

/* ids are bounded by the number of entries, so that memory is bounded by the file. */
static sifr_status check_id(int64_t id, size_t entries, const char *content, const char *name,
                            sifr_error *error) {
    if (id < 0 || (uint64_t)id >= 2 * (uint64_t)entries + 65536)
        return base_fail(error, SIFR_USAGE,
                         "%s: the id %lld of token \"%.60s\" is outside of what %zu tokens allow",
                         name, (long long)id, content, entries);
    return SIFR_OK;
}

/* One token's place in the list of all tokens, before they are laid end to end. */
typedef struct entry {
    const char *content;
    size_t size;
    uint8_t kind;
} entry;

static sifr_status place(entry *entries, int64_t id, const char *content, size_t size, uint8_t kind,
                         const char *name, sifr_error *error) {
    entry *there = &entries[id];
    bool same = there->kind && there->size == size && memcmp(there->content, content, size) == 0;
    if (there->kind && !same)
        return base_fail(error, SIFR_USAGE,
                         "%s: tokens \"%.60s\" and \"%.60s\" have the same id %lld", name,
                         there->content, content, (long long)id);
    *there = (entry){content, size, (uint8_t)(there->kind | kind)};
    return SIFR_OK;
}

/* Lays the bytes that tokens decode to end to end, and enters the words of the model. */
static sifr_status lay_out(formats_tokenizer *t, const entry *entries, sifr_error *error) {
    size_t total = 0, used = 0;
    for (int32_t i = 0; i < t->vocab_size; i++) {
        if (!base_add_size(total, entries[i].size, &total)) return base_fail_alloc(error, SIZE_MAX);
    }
    BASE_TRY(base_alloc(total + 1, 1, &t->bytes, error));
    BASE_TRY(base_alloc((size_t)t->vocab_size + 1, sizeof *t->offsets, &t->offsets, error));
    BASE_TRY(base_alloc((size_t)t->vocab_size + 1, 1, &t->kinds, error));
    for (int32_t i = 0; i < t->vocab_size; i++) {
        size_t count = 0;
        uint8_t *out = (uint8_t *)t->bytes + used;
        t->offsets[i] = used;
        t->kinds[i] = entries[i].kind;
        if (!entries[i].kind) continue;
        if (!formats_bytes_of_content(entries[i].content, entries[i].size, out, &count)) {
            count = entries[i].size;
            memcpy(out, entries[i].content, count);
            t->kinds[i] |= FORMATS_TOKEN_LITERAL;
        }
        used += count;
    }
    t->offsets[t->vocab_size] = used;
    return SIFR_OK;
}

static sifr_status enter_word(formats_tokenizer *t, int32_t id, sifr_error *error) {
    size_t index, size = t->offsets[id + 1] - t->offsets[id];
    const char *bytes = t->bytes + t->offsets[id];
    bool added;
    if (t->kinds[id] & FORMATS_TOKEN_LITERAL) return SIFR_OK;
    BASE_TRY(formats_table_add(&t->words, bytes, size, &index, &added, error));
    BASE_TRY(base_grow(&t->word_ids, &t->word_ids_room, index + 1, sizeof *t->word_ids, error));
    t->word_ids[index] = id;
    if (size == 1) t->byte_ids[(uint8_t)bytes[0]] = id;
    return SIFR_OK;
}

static sifr_status read_vocabulary(formats_tokenizer *t, const json_t *vocabulary, const char *name,
                                   sifr_error *error) {
    sifr_status status = SIFR_OK;
    entry *entries = NULL;
    int64_t largest = -1;
    const char *content;
    json_t *value;
    size_t count = json_object_size(vocabulary), all = count + t->added_count;
    if (!json_is_object(vocabulary) || count == 0)
        return base_fail(error, SIFR_USAGE, "%s: model.vocab must be an object with tokens", name);
    json_object_foreach((json_t *)(uintptr_t)vocabulary, content, value) {
        if (!json_is_integer(value))
            return base_fail(error, SIFR_USAGE, "%s: the id of token \"%.60s\" is no whole number",
                             name, content);
        BASE_TRY(check_id(json_integer_value(value), all, content, name, error));
        largest = base_max_i64(largest, json_integer_value(value));
    }
    for (size_t i = 0; i < t->added_count; i++) {
        BASE_TRY(check_id(t->added[i].id, all, t->added[i].content, name, error));
        largest = base_max_i64(largest, t->added[i].id);
    }
    t->vocab_size = (int32_t)(largest + 1);
    BASE_TRY(base_alloc((size_t)t->vocab_size, sizeof *entries, &entries, error));
    json_object_foreach((json_t *)(uintptr_t)vocabulary, content, value) {
        BASE_TRY_GOTO(status,
                      place(entries, json_integer_value(value), content, strlen(content),
                            FORMATS_TOKEN_THERE, name, error),
                      done);
    }
    for (size_t i = 0; i < t->added_count; i++) {
        const formats_added_token *token = &t->added[i];
        const json_t *there = json_object_get(vocabulary, token->content);
        if (there && json_integer_value(there) != token->id) {
            status = base_fail(error, SIFR_USAGE,
                               "%s: added token \"%.60s\" has id %d, but %lld in model.vocab", name,
                               token->content, token->id, (long long)json_integer_value(there));
            goto done;
        }
        uint8_t kind =
            token->special ? FORMATS_TOKEN_THERE | FORMATS_TOKEN_SPECIAL : FORMATS_TOKEN_THERE;
        BASE_TRY_GOTO(status,
                      place(entries, token->id, token->content, token->size, kind, name, error),
                      done);
    }
    BASE_TRY_GOTO(status, lay_out(t, entries, error), done);
    for (int b = 0; b < 256; b++) t->byte_ids[b] = -1;
    json_object_foreach((json_t *)(uintptr_t)vocabulary, content, value) {
        BASE_TRY_GOTO(status, enter_word(t, (int32_t)json_integer_value(value), error), done);
    }
done:
    free(entries);
    return status;
}

/* The id of a part of a merge, and its raw bytes appended to `joined`. */
static sifr_status merge_part(const formats_tokenizer *t, const char *text, size_t size,
                              uint8_t *joined, size_t *used, size_t rank, const char *name,
                              int32_t *id, sifr_error *error) {
    size_t count, index = SIZE_MAX;
    if (formats_bytes_of_content(text, size, joined + *used, &count))
        index = formats_table_find(&t->words, joined + *used, count);
    if (index == SIZE_MAX)
        return base_fail(error, SIFR_USAGE,
                         "%s: merge %zu names \"%.*s\", which is not in model.vocab", name, rank,
                         (int)(size < 60 ? size : 60), text);
    *used += count;
    *id = t->word_ids[index];
    return SIFR_OK;
}

/* A merge as "a b" or ["a", "b"]. */
static sifr_status split_merge(const json_t *merge, size_t rank, const char *name,
                               const char *text[2], size_t size[2], sifr_error *error) {
    if (json_is_string(merge)) {
        const char *blank = strchr(json_string_value(merge), ' ');
        text[0] = json_string_value(merge);
        if (blank && !strchr(blank + 1, ' ')) {
            size[0] = (size_t)(blank - text[0]);
            text[1] = blank + 1;
            size[1] = strlen(text[1]);
            if (size[0] && size[1]) return SIFR_OK;
        }
    } else if (json_is_array(merge) && json_array_size(merge) == 2) {
        for (size_t i = 0; i < 2; i++) {
            const json_t *part = json_array_get(merge, i);
            text[i] = json_string_value(part);
            size[i] = json_string_length(part);
        }
        if (text[0] && text[1] && size[0] && size[1]) return SIFR_OK;
    }
    return base_fail(error, SIFR_USAGE, "%s: merge %zu is neither \"a b\" nor [\"a\", \"b\"]", name,
                     rank);
}

static sifr_status enter_merge(formats_tokenizer *t, int32_t left, int32_t right, uint32_t rank,
                               int32_t id, const char *name, sifr_error *error) {
    const formats_merge_slot *there = formats_find_merge(t, left, right);
    if (there)
        return base_fail(error, SIFR_USAGE, "%s: merges %u and %u join the same two tokens", name,
                         there->rank, rank);
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t at = (size_t)((key * 0x9E3779B97F4A7C15u) >> 32) & t->slot_mask;
    while (t->slots[at].rank != FORMATS_NO_MERGE) at = (at + 1) & t->slot_mask;
    t->slots[at] = (formats_merge_slot){left, right, rank, id};
    t->merge_ids[rank] = id;
    return SIFR_OK;
}

static void fill_byte_pairs(formats_tokenizer *t) {
    for (size_t a = 0; a < 256; a++) {
        for (size_t b = 0; b < 256; b++) {
            const formats_merge_slot *slot = NULL;
            if (t->byte_ids[a] >= 0 && t->byte_ids[b] >= 0)
                slot = formats_find_merge(t, t->byte_ids[a], t->byte_ids[b]);
            t->byte_pairs[a << 8 | b] = slot ? slot->rank : FORMATS_NO_MERGE;
        }
    }
}

static sifr_status read_merges(formats_tokenizer *t, const json_t *merges, const char *name,
                               sifr_error *error) {
    size_t count = json_array_size(merges), slots = 1024, room = 0;
    uint8_t *joined = NULL;
    sifr_status status = SIFR_OK;
    if (!json_is_array(merges))
        return base_fail(error, SIFR_USAGE, "%s: model.merges must be an array", name);
    while (slots < count * 2) slots *= 2;
    BASE_TRY(base_alloc(slots, sizeof *t->slots, &t->slots, error));
    for (size_t i = 0; i < slots; i++) t->slots[i].rank = FORMATS_NO_MERGE;
    t->slot_mask = slots - 1;
    BASE_TRY(base_alloc(count + 1, sizeof *t->merge_ids, &t->merge_ids, error));
    BASE_TRY(base_alloc(65536, sizeof *t->byte_pairs, &t->byte_pairs, error));
    for (size_t rank = 0; rank < count; rank++) {
        const char *text[2] = {NULL, NULL};
        size_t size[2] = {0, 0}, used = 0;
        int32_t id[2];
        BASE_TRY_GOTO(
            status, split_merge(json_array_get(merges, rank), rank, name, text, size, error), done);
        BASE_TRY_GOTO(status, base_grow(&joined, &room, size[0] + size[1], 1, error), done);
        for (int i = 0; i < 2; i++) {
            BASE_TRY_GOTO(status,
                          merge_part(t, text[i], size[i], joined, &used, rank, name, &id[i], error),
                          done);
        }
        size_t whole = formats_table_find(&t->words, joined, used);
        if (whole == SIZE_MAX) {
            status = base_fail(error, SIFR_USAGE,
                               "%s: merge %zu makes \"%.*s%.*s\", which is not in model.vocab",
                               name, rank, (int)(size[0] < 60 ? size[0] : 60), text[0],
                               (int)(size[1] < 60 ? size[1] : 60), text[1]);
            goto done;
        }
        BASE_TRY_GOTO(status,
                      enter_merge(t, id[0], id[1], (uint32_t)rank, t->word_ids[whole], name, error),
                      done);
    }
    fill_byte_pairs(t);
done:
    free(joined);
    return status;
}

static sifr_status build(formats_tokenizer *t, const json_t *root, const char *name,
                         sifr_error *error) {
    const json_t *model = json_object_get(root, "model");
    const char *unknown;
    if (!json_is_object(root) || !json_is_object(model))
        return base_fail(error, SIFR_USAGE, "%s: no tokenizer.json: it has no \"model\"", name);
    BASE_TRY(formats_tokenizer_read_parts(t, root, name, error));
    BASE_TRY(formats_tokenizer_read_added(t, json_object_get(root, "added_tokens"), name, error));
    BASE_TRY(read_vocabulary(t, json_object_get(model, "vocab"), name, error));
    BASE_TRY(read_merges(t, json_object_get(model, "merges"), name, error));
    BASE_TRY(base_json_string(model, "unk_token", NULL, &unknown, name, error));
    if (unknown) {
        t->unk_id = formats_tokenizer_id(t, unknown);
        if (t->unk_id < 0)
            return base_fail(error, SIFR_USAGE, "%s: the unk_token \"%.60s\" is not in model.vocab",
                             name, unknown);
    }
    BASE_TRY(formats_unicode_build(&t->unicode, t->unicode.normalizes, error));
    BASE_TRY(formats_tokenizer_build_tries(t, error));
    BASE_TRY(formats_tokenizer_read_post(t, json_object_get(root, "post_processor"), name, error));
    static const char *const ends[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<|im_end|>"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends && t->eos_id < 0; i++)
        t->eos_id = formats_tokenizer_id(t, ends[i]);
    return SIFR_OK;
}

sifr_status formats_tokenizer_from_json(const json_t *root, const char *name,
                                        formats_tokenizer **out, sifr_error *error) {
    formats_tokenizer *t;
    BASE_TRY(base_alloc(1, sizeof *t, &t, error));
    t->unk_id = t->eos_id = -1;
    sifr_status status = build(t, root, name, error);
    if (status == SIFR_OK)
        *out = t;
    else
        formats_tokenizer_free(t);
    return status;
}

sifr_status formats_tokenizer_parse(const char *json, size_t size, const char *name,
                                    formats_tokenizer **out, sifr_error *error) {
    json_t *root;
    BASE_TRY(base_json_parse(json, size, name, &root, error));
    sifr_status status = formats_tokenizer_from_json(root, name, out, error);
    json_decref(root);
    return status;
}

/* eos_token of tokenizer_config.json: a string, or an object with "content". */
static sifr_status read_config(formats_tokenizer *t, const char *path, sifr_error *error) {
    json_t *config;
    BASE_TRY(base_json_load(path, 64 << 20, &config, error));
    const json_t *eos = json_object_get(config, "eos_token");
    const char *content =
        json_string_value(json_is_object(eos) ? json_object_get(eos, "content") : eos);
    sifr_status status = SIFR_OK;
    if (content) {
        int32_t id = formats_tokenizer_id(t, content);
        if (id >= 0)
            t->eos_id = id;
        else
            status =
                base_fail(error, SIFR_USAGE, "%s: the eos_token \"%.60s\" is not in tokenizer.json",
                          path, content);
    }
    json_decref(config);
    return status;
}

sifr_status formats_tokenizer_load(const char *path, formats_tokenizer **out, sifr_error *error) {
    char file[BASE_PATH_LENGTH], config[BASE_PATH_LENGTH] = "", *text = NULL;
    size_t size;
    if (base_is_directory(path)) {
        BASE_TRY(base_path_join(file, path, "tokenizer.json", error));
        BASE_TRY(base_path_join(config, path, "tokenizer_config.json", error));
    } else if (snprintf(file, sizeof file, "%s", path) >= (int)sizeof file) {
        return base_fail(error, SIFR_USAGE, "%.200s…: path too long", path);
    }
    BASE_TRY(base_read_file(file, FILE_LIMIT, &text, &size, error));
    formats_tokenizer *t = NULL;
    sifr_status status = formats_tokenizer_parse(text, size, file, &t, error);
    free(text);
    if (status == SIFR_OK && *config && base_is_file(config))
        status = read_config(t, config, error);
    if (status == SIFR_OK)
        *out = t;
    else
        formats_tokenizer_free(t);
    return status;
}

void formats_tokenizer_free(formats_tokenizer *t) {
    if (!t) return;
    formats_unicode_free(&t->unicode);
    formats_table_free(&t->words);
    free(t->word_ids);
    free(t->byte_pairs);
    free(t->merge_ids);
    free(t->slots);
    free(t->bytes);
    free(t->offsets);
    free(t->kinds);
    for (size_t i = 0; i < t->added_count; i++) free(t->added[i].content);
    free(t->added);
    free(t->raw.nodes);
    free(t->normal.nodes);
    free(t->before);
    free(t->after);
    free(t);
}

int64_t formats_tokenizer_vocab_size(const formats_tokenizer *t) {
    return t->vocab_size;
}

int64_t formats_tokenizer_text_size(const formats_tokenizer *t) {
    int64_t size = t->vocab_size;
    while (size > 0 && (!t->kinds[size - 1] || (t->kinds[size - 1] & FORMATS_TOKEN_SPECIAL)))
        size--;
    return size;
}

int32_t formats_tokenizer_eos(const formats_tokenizer *t) {
    return t->eos_id;
}

const char *formats_tokenizer_bytes(const formats_tokenizer *t, int32_t id, size_t *size) {
    if (id < 0 || id >= t->vocab_size || !t->kinds[id]) return NULL;
    *size = t->offsets[id + 1] - t->offsets[id];
    return t->bytes + t->offsets[id];
}

bool formats_tokenizer_is_special(const formats_tokenizer *t, int32_t id) {
    return id >= 0 && id < t->vocab_size && (t->kinds[id] & FORMATS_TOKEN_SPECIAL);
}

int32_t formats_tokenizer_id(const formats_tokenizer *t, const char *content) {
    size_t size = strlen(content), count, index = SIZE_MAX;
    for (size_t i = 0; i < t->added_count; i++) {
        if (t->added[i].size == size && memcmp(t->added[i].content, content, size) == 0)
            return t->added[i].id;
    }
    uint8_t *raw = malloc(size + 1);
    if (!raw) return -1;
    if (formats_bytes_of_content(content, size, raw, &count))
        index = formats_table_find(&t->words, raw, count);
    free(raw);
    if (index != SIZE_MAX) return t->word_ids[index];
    for (int32_t id = 0; id < t->vocab_size; id++) {
        size_t there;
        const char *bytes = formats_tokenizer_bytes(t, id, &there);
        if (bytes && (t->kinds[id] & FORMATS_TOKEN_LITERAL) && there == size &&
            memcmp(bytes, content, size) == 0)
            return id;
    }
    return -1;
}
