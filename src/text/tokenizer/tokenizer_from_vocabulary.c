/* The "model" of a tokenizer.json from pieces, vocab.txt, or vocab.json with merges.txt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer_files.h"
#include "text/tokenizer/tokenizer_unicode.h"

enum { MERGES_LIMIT = 1 << 20 }; /* far above published vocabularies; bounds memory */

typedef struct join {
    int64_t whole, left, right;
    uint32_t word, left_word, right_word;
} join;

typedef struct joins {
    join *items;
    size_t count, capacity;
} joins;

static int compare_by_parts(const void *a, const void *b) {
    const join *x = a, *y = b;
    if (x->whole != y->whole) return x->whole < y->whole ? -1 : 1;
    if (x->left != y->left) return x->left < y->left ? -1 : 1;
    return x->right < y->right ? -1 : x->right > y->right;
}

static int compare_by_length(const void *a, const void *b) {
    const join *x = a, *y = b;
    if (x->whole != y->whole) return x->whole < y->whole ? -1 : 1;
    return 0;
}

/* Says of most strings that they are no words, from a hash that is known for every part of a word
 * at once: a file of long tokens has as many parts as bytes. */
typedef struct filter {
    uint64_t powers[TEXT_PIECE_LENGTH + 1];
    uint64_t *bits;
    unsigned shift; /* of a hash, to the number of its bit */
} filter;

static uint64_t add_byte(uint64_t hash, uint8_t byte) {
    return hash * 0x9E3779B97F4A7C15u + byte + 1;
}

static bool may_be_word(const filter *f, uint64_t hash) {
    uint64_t bit = hash * 0xD6E8FEB86659FD93u >> f->shift;
    return f->bits[bit / 64] >> bit % 64 & 1;
}

static sifr_status make_filter(const text_table *words, filter *f, sifr_error *error) {
    f->powers[0] = 1;
    for (size_t i = 1; i <= TEXT_PIECE_LENGTH; i++)
        f->powers[i] = f->powers[i - 1] * 0x9E3779B97F4A7C15u;
    for (f->shift = 48; f->shift > 24 && (uint64_t)1 << (64 - f->shift) < 16 * words->count;)
        f->shift--;
    BASE_TRY(base_alloc((size_t)1 << (64 - f->shift - 6), sizeof *f->bits, &f->bits, error));
    for (size_t w = 0; w < words->count; w++) {
        size_t size;
        const uint8_t *bytes = text_table_bytes(words, w, &size);
        uint64_t hash = 0;
        for (size_t i = 0; i < size; i++) hash = add_byte(hash, bytes[i]);
        uint64_t bit = hash * 0xD6E8FEB86659FD93u >> f->shift;
        f->bits[bit / 64] |= (uint64_t)1 << bit % 64;
    }
    return SIFR_OK;
}

/* The ways to put word `word` together, shortest left part first. */
static sifr_status find_joins(const text_files *files, const filter *f, size_t word, joins *out,
                              sifr_error *error) {
    size_t size;
    const uint8_t *bytes = text_table_bytes(&files->words, word, &size);
    uint64_t whole = 0, start = 0;
    for (size_t i = 0; i < size; i++) whole = add_byte(whole, bytes[i]);
    for (size_t i = 1; i < size; i++) {
        start = add_byte(start, bytes[i - 1]);
        if (!may_be_word(f, start) || !may_be_word(f, whole - start * f->powers[size - i]))
            continue;
        size_t left = text_table_find(&files->words, bytes, i), right;
        if (left == SIZE_MAX) continue;
        right = text_table_find(&files->words, bytes + i, size - i);
        if (right == SIZE_MAX) continue;
        if (out->count == MERGES_LIMIT)
            return base_fail(error, SIFR_USAGE, "%s: its tokens give more than %d merges",
                             files->vocabulary_path, MERGES_LIMIT);
        BASE_TRY(base_grow(&out->items, &out->capacity, out->count + 1, sizeof *out->items, error));
        out->items[out->count++] =
            (join){files->word_ids[word], files->word_ids[left], files->word_ids[right],
                   (uint32_t)word,        (uint32_t)left,        (uint32_t)right};
    }
    return SIFR_OK;
}

sifr_status text_files_merges(text_files *files, json_t *const *names, bool by_parts,
                              const size_t *order, json_t **out, sifr_error *error) {
    joins all = {0};
    filter f = {0};
    json_t *merges = NULL;
    sifr_status status = make_filter(&files->words, &f, error);
    for (size_t i = 0; i < files->words.count && status == SIFR_OK; i++)
        status = find_joins(files, &f, order ? order[i] : i, &all, error);
    if (status != SIFR_OK) goto done;
    if (by_parts && all.count) {
        qsort(all.items, all.count, sizeof *all.items, compare_by_parts);
    } else if (!order) {
        /* Words were taken in the order of their ids: the list is sorted already. */
        for (size_t i = 1; i < all.count; i++) {
            if (compare_by_length(&all.items[i - 1], &all.items[i]) <= 0) continue;
            status =
                base_fail(error, SIFR_FAILED, "%s: its ids do not rise", files->vocabulary_path);
            goto done;
        }
    }
    merges = json_array();
    for (size_t i = 0; i < all.count; i++) {
        json_t *pair =
            json_pack("[O, O]", names[all.items[i].left_word], names[all.items[i].right_word]);
        if (!pair || json_array_append_new(merges, pair)) {
            status = base_fail_alloc(error, 64);
            goto done;
        }
    }
    *out = merges;
    merges = NULL;
done:
    json_decref(merges);
    free(all.items);
    free(f.bits);
    return status;
}

static sifr_status set_model(text_files *files, json_t *model, const char *key, json_t *value,
                             sifr_error *error) {
    if (!model || !value || json_object_set(model, key, value)) return base_fail_alloc(error, 256);
    return json_object_set(files->root, "model", model) ? base_fail_alloc(error, 256) : SIFR_OK;
}

static int compare_by_score(const void *a, const void *b) {
    const text_proto_piece *x = *(const text_proto_piece *const *)a;
    const text_proto_piece *y = *(const text_proto_piece *const *)b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->text.size != y->text.size) return x->text.size > y->text.size ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* sentencepiece merges by score, the leftmost of equals first. Equals are runs of blanks (Llama 2
 * gives them all one score): there that is the longest one first. */
static sifr_status order_by_score(const text_proto *proto, size_t **out, sifr_error *error) {
    const text_proto_piece **sorted;
    BASE_TRY(base_alloc(proto->count, sizeof *sorted, &sorted, error));
    sifr_status status = base_alloc(proto->count, sizeof **out, out, error);
    for (size_t i = 0; i < proto->count && status == SIFR_OK; i++) sorted[i] = &proto->pieces[i];
    if (status == SIFR_OK) qsort(sorted, proto->count, sizeof *sorted, compare_by_score);
    for (size_t i = 0; i < proto->count && status == SIFR_OK; i++)
        (*out)[i] = (size_t)(sorted[i] - proto->pieces);
    free(sorted);
    return status;
}

static sifr_status bpe_of_pieces(text_files *files, const text_proto *proto, sifr_error *error) {
    json_t *vocabulary = json_object(), *merges = NULL, **names;
    const json_t *model = json_object_get(files->root, "model");
    size_t *order = NULL;
    sifr_status status = base_alloc(proto->count, sizeof *names, &names, error);
    if (status == SIFR_OK && files->class->kind == TEXT_CLASS_BACKEND)
        status = order_by_score(proto, &order, error);
    for (size_t i = 0; i < proto->count && status == SIFR_OK; i++) {
        const text_span *text = &proto->pieces[i].text;
        names[i] = json_stringn(text->bytes, text->size);
        status = text_files_add_word(files, text->bytes, text->size, (int64_t)i, error);
        if (!names[i] ||
            json_object_setn_new(vocabulary, text->bytes, text->size, json_integer((json_int_t)i)))
            status = base_fail_alloc(error, text->size);
    }
    if (status == SIFR_OK) status = text_files_merges(files, names, false, order, &merges, error);
    if (status == SIFR_OK) {
        json_t *to = (json_t *)(uintptr_t)model;
        if (json_object_set(to, "vocab", vocabulary) || json_object_set(to, "merges", merges))
            status = base_fail_alloc(error, 64);
    }
    for (size_t i = 0; names && i < proto->count; i++) json_decref(names[i]);
    free(names);
    free(order);
    json_decref(vocabulary);
    json_decref(merges);
    return status;
}

sifr_status text_files_pieces(text_files *files, const text_proto *proto, bool bpe, int64_t unk_id,
                              sifr_error *error) {
    json_t *model, *list;
    files->model_size = (int64_t)proto->count;
    if (bpe) return bpe_of_pieces(files, proto, error);
    if (unk_id < 0 || unk_id >= files->model_size)
        return base_fail(error, SIFR_USAGE, "%s: its unknown piece has number %lld of %zu",
                         files->vocabulary_path, (long long)unk_id, proto->count);
    model = json_pack("{s:s, s:I, s:b}", "type", "Unigram", "unk_id", (json_int_t)unk_id,
                      "byte_fallback",
                      files->class->kind == TEXT_CLASS_BACKEND && proto->byte_fallback);
    list = json_array();
    sifr_status status = SIFR_OK;
    for (size_t i = 0; i < proto->count && status == SIFR_OK; i++) {
        const text_span *text = &proto->pieces[i].text;
        json_t *piece =
            json_pack("[s%, f]", text->bytes, text->size, (double)proto->pieces[i].score);
        status = text_files_add_word(files, text->bytes, text->size, (int64_t)i, error);
        if (!piece || json_array_append_new(list, piece)) status = base_fail_alloc(error, 64);
    }
    if (status == SIFR_OK) status = set_model(files, model, "vocab", list, error);
    json_decref(model);
    json_decref(list);
    return status;
}

/* One line of a text file, without its end and without the whitespace before that. */
typedef struct line {
    const char *bytes;
    size_t size, number; /* from 1 */
} line;

static bool is_white(uint32_t c) {
    return (c >= 9 && c <= 13) || c == 32 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

/* The line that begins at text[*at]; false at the end. */
static sifr_status next_line(const text_files *files, const char *text, size_t size, size_t *at,
                             line *out, sifr_error *error) {
    const char *begin = text + *at, *end = memchr(begin, '\n', size - *at);
    size_t length = end ? (size_t)(end - begin) : size - *at;
    *at += length + (end != NULL);
    out->number++;
    out->bytes = begin;
    out->size = length;
    if (text_utf8_valid((const uint8_t *)begin, length) != length ||
        (length && memchr(begin, 0, length)))
        return base_fail(error, SIFR_USAGE, "%s: line %zu is not UTF-8 text",
                         files->vocabulary_path, out->number);
    return SIFR_OK;
}

static void trim_end(line *l) {
    const uint8_t *begin = (const uint8_t *)l->bytes;
    while (l->size) {
        size_t length;
        const uint8_t *last = text_utf8_back(begin + l->size, begin);
        if (!is_white(text_utf8_get(last, &length))) return;
        l->size = (size_t)(last - begin);
    }
}

static sifr_status read_words(text_files *files, const char *text, size_t size, json_t *vocabulary,
                              sifr_error *error) {
    line l = {0};
    for (size_t at = 0; at < size;) {
        size_t there;
        BASE_TRY(next_line(files, text, size, &at, &l, error));
        trim_end(&l);
        there = text_table_find(&files->words, l.bytes, l.size);
        if (there != SIZE_MAX)
            return base_fail(error, SIFR_USAGE,
                             "%s: line %zu holds token \"%.*s\", which line %zu has already",
                             files->vocabulary_path, l.number, (int)(l.size < 60 ? l.size : 60),
                             l.bytes, there + 1);
        int64_t id = (int64_t)l.number - 1;
        BASE_TRY(text_files_add_word(files, l.bytes, l.size, id, error));
        if (json_object_setn_new(vocabulary, l.bytes, l.size, json_integer(id)))
            return base_fail_alloc(error, l.size);
    }
    files->model_size = (int64_t)l.number;
    return SIFR_OK;
}

sifr_status text_files_word_piece(text_files *files, const char *unknown, sifr_error *error) {
    char *text;
    size_t size;
    BASE_TRY(base_read_file(files->vocabulary_path, TEXT_VOCABULARY_LIMIT, &text, &size, error));
    json_t *vocabulary = json_object();
    json_t *model = json_pack("{s:s, s:s, s:s, s:i}", "type", "WordPiece", "unk_token", unknown,
                              "continuing_subword_prefix", "##", "max_input_chars_per_word", 100);
    sifr_status status =
        vocabulary ? read_words(files, text, size, vocabulary, error) : base_fail_alloc(error, 64);
    if (status == SIFR_OK) status = set_model(files, model, "vocab", vocabulary, error);
    json_decref(model);
    json_decref(vocabulary);
    free(text);
    return status;
}

/* Lines of two parts with a blank between; a line that begins with #version is left out. */
static sifr_status read_merges(text_files *files, const char *path, json_t *merges,
                               sifr_error *error) {
    char *text, vocabulary[BASE_PATH_LENGTH];
    size_t size;
    line l = {0};
    sifr_status status = SIFR_OK;
    BASE_TRY(base_read_file(path, TEXT_VOCABULARY_LIMIT, &text, &size, error));
    memcpy(vocabulary, files->vocabulary_path, sizeof vocabulary);
    snprintf(files->vocabulary_path, sizeof files->vocabulary_path, "%s", path);
    for (size_t at = 0; at < size && status == SIFR_OK;) {
        status = next_line(files, text, size, &at, &l, error);
        if (status != SIFR_OK) break;
        if (l.size && l.bytes[l.size - 1] == '\r') l.size--;
        if (l.size >= 8 && memcmp(l.bytes, "#version", 8) == 0) continue;
        const char *blank = l.size ? memchr(l.bytes, ' ', l.size) : NULL;
        size_t left = blank ? (size_t)(blank - l.bytes) : 0;
        size_t right = blank ? l.size - left - 1 : 0;
        if (!left || !right || memchr(blank + 1, ' ', right)) {
            status = base_fail(error, SIFR_USAGE,
                               "%s: line %zu is no merge: two tokens with a blank between", path,
                               l.number);
        } else if (json_array_size(merges) == MERGES_LIMIT) {
            status = base_fail(error, SIFR_USAGE, "%s: more than %d merges", path, MERGES_LIMIT);
        } else {
            json_t *pair = json_pack("[s%, s%]", l.bytes, left, blank + 1, right);
            if (!pair || json_array_append_new(merges, pair)) status = base_fail_alloc(error, 64);
        }
    }
    if (status == SIFR_OK)
        memcpy(files->vocabulary_path, vocabulary, sizeof files->vocabulary_path);
    free(text);
    return status;
}

sifr_status text_files_byte_level(text_files *files, sifr_error *error) {
    json_t *model = json_object_get(files->root, "model"), *vocabulary, *merges = json_array();
    json_t *value;
    const char *content;
    char path[BASE_PATH_LENGTH];
    sifr_status status =
        base_json_load(files->vocabulary_path, TEXT_VOCABULARY_LIMIT, &vocabulary, error);
    if (status != SIFR_OK) return json_decref(merges), status;
    if (!json_is_object(vocabulary))
        status = base_fail(error, SIFR_USAGE, "%s: must be an object of tokens and their ids",
                           files->vocabulary_path);
    json_object_foreach(vocabulary, content, value) {
        if (status != SIFR_OK) break;
        json_int_t id = json_integer_value(value);
        if (json_is_integer(value) && id >= 0 && id <= INT32_MAX)
            status = text_files_add_word(files, content, strlen(content), id, error);
        else
            status = base_fail(error, SIFR_USAGE, "%s: the id of token \"%.60s\" is no token id",
                               files->vocabulary_path, content);
    }
    files->model_size = (int64_t)json_object_size(vocabulary);
    if (status == SIFR_OK) status = base_path_join(path, files->folder, "merges.txt", error);
    if (status == SIFR_OK) status = read_merges(files, path, merges, error);
    if (status == SIFR_OK &&
        (json_object_set(model, "vocab", vocabulary) || json_object_set(model, "merges", merges)))
        status = base_fail_alloc(error, 64);
    json_decref(vocabulary);
    json_decref(merges);
    return status;
}
