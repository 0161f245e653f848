/* What is written is tried: llm_tokenizer_spm of llama.cpp, its steps in its order, on texts that
 * set tokenizers apart. A vocabulary of scores cannot carry a character map, blanks that are taken
 * out, Unigram, or merges that are not those of its scores. */
#include "formats/gguf/gguf_spm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer.h"

static const char *const texts[] = {
    "The quick brown fox",
    "Numbers: 1 22 333",
    "x",
    "Hello  two  blanks",
    "trailing  ",
    "tab\there",
    "line\nbreak\n\nmore\n",
    "Gr\303\274\303\237e aus K\303\266ln, \320\277\321\200\320\270\320\262\320\265\321\202",
    "\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c",
    "\xf0\x9f\x9a\x80\xf0\x9f\x9a\x80 rocket",
    "we'll say they've",
    "def f(x):\n    return x * x",
    "e\xcc\x81 \xef\xac\x81 \xc2\xbd",
    "a<b>c and https://example.com/a?b=c&d=1",
    "and then they said that nothing of it would ever have been understood by the others",
};
enum { CONFIG_LIMIT = 1 << 24, TEXTS = sizeof texts / sizeof *texts, LONGEST = 256 };

static const char blank[] = "\xe2\x96\x81";
enum { BLANK_SIZE = sizeof blank - 1 };

typedef struct spm {
    const formats_gguf_tokens *tokens;
    int32_t *by_text; /* ids in the order of their texts; user tokens with blanks are not in it */
    int32_t *special; /* ids of tokens that are found in texts, the longest first */
    size_t count, specials;
    bool prefix, after_special;
    text_tokenizer_ids ids;
    bool no_byte; /* a byte has no token */
} spm;

/* --- tables --- */

static int compare_bytes(const char *a, size_t a_size, const char *b, size_t b_size) {
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int by_text(const void *a, const void *b) {
    const formats_gguf_token *x = *(const formats_gguf_token *const *)a,
                             *y = *(const formats_gguf_token *const *)b;
    return compare_bytes(x->text, x->size, y->text, y->size);
}

static int by_length(const void *a, const void *b) {
    const formats_gguf_token *x = *(const formats_gguf_token *const *)a,
                             *y = *(const formats_gguf_token *const *)b;
    return (x->size < y->size) - (x->size > y->size);
}

static bool is_special(const formats_gguf_token *t) {
    return t->type == FORMATS_GGUF_TOKEN_USER || t->type == FORMATS_GGUF_TOKEN_CONTROL ||
           t->type == FORMATS_GGUF_TOKEN_UNKNOWN;
}

static sifr_status make_tables(spm *s, sifr_error *error) {
    const formats_gguf_token **sorted;
    size_t capacity = (size_t)s->tokens->count, found = 0;
    BASE_TRY(base_alloc(capacity + 1, sizeof *sorted, &sorted, error));
    sifr_status status = base_alloc(capacity + 1, sizeof *s->by_text, &s->by_text, error);
    if (status == SIFR_OK)
        status = base_alloc(capacity + 1, sizeof *s->special, &s->special, error);
    for (size_t i = 0; status == SIFR_OK && i < capacity; i++) {
        const formats_gguf_token *t = &s->tokens->list[i];
        if (t->text && t->size && !t->blanks) sorted[s->count++] = t;
    }
    if (s->count) qsort(sorted, s->count, sizeof *sorted, by_text);
    for (size_t i = 0; i < s->count; i++) s->by_text[i] = (int32_t)(sorted[i] - s->tokens->list);
    for (size_t i = 0; status == SIFR_OK && i < capacity; i++) {
        const formats_gguf_token *t = &s->tokens->list[i];
        if (t->text && t->size && is_special(t)) sorted[found++] = t;
    }
    if (found) qsort(sorted, found, sizeof *sorted, by_length);
    for (size_t i = 0; i < found; i++) s->special[i] = (int32_t)(sorted[i] - s->tokens->list);
    s->specials = found;
    free(sorted);
    return status;
}

static int32_t find(const spm *s, const char *text, size_t size) {
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const formats_gguf_token *t = &s->tokens->list[s->by_text[middle]];
        int order = compare_bytes(t->text, t->size, text, size);
        if (order == 0) return s->by_text[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

/* --- a text --- */

static sifr_status push(spm *s, int32_t id, sifr_error *error) {
    BASE_TRY(base_grow(&s->ids.ids, &s->ids.capacity, s->ids.count + 1, sizeof *s->ids.ids, error));
    s->ids.ids[s->ids.count++] = id;
    return SIFR_OK;
}

static sifr_status push_symbol(spm *s, const char *text, size_t size, sifr_error *error) {
    char name[8];
    int32_t id = find(s, text, size);
    if (id >= 0) return push(s, id, error);
    for (size_t i = 0; i < size; i++) {
        snprintf(name, sizeof name, "<0x%02X>", (unsigned char)text[i]);
        id = find(s, name, strlen(name));
        if (id < 0) s->no_byte = true;
        BASE_TRY(push(s, id, error));
    }
    return SIFR_OK;
}

/* Merges neighbours whose text is a token, the best score first, the leftmost of equals. */
static sifr_status merge(spm *s, const char *text, size_t size, sifr_error *error) {
    size_t begins[4 * LONGEST + 1], count = 0;
    for (size_t i = 0; i < size; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80 && count < 4 * LONGEST) begins[count++] = i;
    }
    begins[count] = size;
    for (;;) {
        size_t best = count;
        float score = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            int32_t id = find(s, text + begins[i], begins[i + 2] - begins[i]);
            if (id < 0 || (best < count && s->tokens->list[id].score <= score)) continue;
            best = i;
            score = s->tokens->list[id].score;
        }
        if (best == count) break;
        memmove(begins + best + 1, begins + best + 2, (count - best - 1) * sizeof *begins);
        count--;
    }
    for (size_t i = 0; i < count; i++)
        BASE_TRY(push_symbol(s, text + begins[i], begins[i + 1] - begins[i], error));
    return SIFR_OK;
}

static sifr_status split_plain(spm *s, const char *text, size_t size, sifr_error *error) {
    char buffer[BLANK_SIZE * (LONGEST + 1)];
    size_t length = 0;
    if (size == 0) return SIFR_OK;
    if (s->prefix && s->after_special) {
        memcpy(buffer, blank, BLANK_SIZE);
        length = BLANK_SIZE;
    }
    for (size_t i = 0; i < size && i < LONGEST; i++) {
        bool is_blank = text[i] == ' ';
        memcpy(buffer + length, is_blank ? blank : text + i, is_blank ? BLANK_SIZE : 1);
        length += is_blank ? BLANK_SIZE : 1;
    }
    s->after_special = false;
    return merge(s, buffer, length, error);
}

/* The token with blanks for U+2581 where it is written so. */
static size_t plain_text(const formats_gguf_token *t, char out[LONGEST]) {
    size_t size = 0;
    for (size_t i = 0; i < t->size && size < LONGEST; i++) {
        bool is_blank =
            t->blanks && t->size - i >= BLANK_SIZE && memcmp(t->text + i, blank, BLANK_SIZE) == 0;
        out[size++] = is_blank ? ' ' : t->text[i];
        if (is_blank) i += BLANK_SIZE - 1;
    }
    return size;
}

/* The first token, from the longest on, that the text holds; its place. */
static bool find_special(const spm *s, const char *text, size_t size, size_t from, size_t *which,
                         size_t *at, size_t *length) {
    char token[LONGEST];
    for (size_t i = from; i < s->specials; i++) {
        size_t wanted = plain_text(&s->tokens->list[s->special[i]], token);
        if (wanted == 0 || wanted > size) continue;
        for (size_t p = 0; p + wanted <= size; p++) {
            if (memcmp(text + p, token, wanted) != 0) continue;
            *which = i, *at = p, *length = wanted;
            return true;
        }
    }
    return false;
}

static sifr_status split(spm *s, const char *text, size_t size, size_t from, sifr_error *error) {
    size_t which, at, length;
    while (size > 0) {
        if (!find_special(s, text, size, from, &which, &at, &length))
            return split_plain(s, text, size, error);
        /* Before its first place only shorter tokens are left. */
        if (at > 0) BASE_TRY(split(s, text, at, which + 1, error));
        BASE_TRY(push(s, s->special[which], error));
        s->after_special = true;
        text += at + length;
        size -= at + length;
        from = which;
    }
    return SIFR_OK;
}

static sifr_status split_text(spm *s, const char *text, sifr_error *error) {
    s->ids.count = 0;
    s->after_special = true;
    return split(s, text, strlen(text), 0, error);
}

/* --- beside the tokenizer --- */

typedef struct spm_pair {
    text_tokenizer *tokenizer;
    text_tokenizer_scratch *scratch;
    text_tokenizer_ids ids;
} spm_pair;

static sifr_status is_same(spm *s, spm_pair *p, const char *text, bool *same, sifr_error *error) {
    p->ids.count = 0;
    BASE_TRY(
        text_tokenizer_encode(p->tokenizer, p->scratch, text, strlen(text), false, &p->ids, error));
    BASE_TRY(split_text(s, text, error));
    *same = s->ids.count == p->ids.count &&
            (s->ids.count == 0 ||
             memcmp(s->ids.ids, p->ids.ids, s->ids.count * sizeof *s->ids.ids) == 0);
    return SIFR_OK;
}

/* *bad: the first text that differs; NULL: none. */
static sifr_status try_texts(spm *s, spm_pair *p, bool prefix, const char **bad,
                             sifr_error *error) {
    bool same = true;
    s->prefix = prefix;
    *bad = NULL;
    for (int i = 0; i < TEXTS && same; i++) {
        BASE_TRY(is_same(s, p, texts[i], &same, error));
        if (!same) *bad = texts[i];
    }
    return SIFR_OK;
}

/* Where tokenizer_config.json asks for a class of transformers, tokenizer.model alone may be read
 * otherwise; "": it does not, or there is a tokenizer.json. */
static const char *find_remedy(const char *folder) {
    char path[BASE_PATH_LENGTH];
    json_t *settings;
    if (base_has_file(folder, "tokenizer.json") || !base_has_file(folder, "tokenizer.model") ||
        base_path_join(path, folder, "tokenizer_config.json", NULL) != SIFR_OK ||
        base_json_load(path, CONFIG_LIMIT, &settings, NULL) != SIFR_OK)
        return "";
    bool asks = json_is_string(json_object_get(settings, "tokenizer_class"));
    json_decref(settings);
    if (!asks) return "";
    return ", but what sentencepiece gives: without \"tokenizer_class\" in tokenizer_config.json "
           "tokenizer.model alone decides, as sentencepiece reads it, and a model is trained and "
           "evaluated with those tokens";
}

static sifr_status fail_text(spm *s, spm_pair *p, const char *folder, const char *text, bool prefix,
                             sifr_error *error) {
    bool same;
    s->prefix = prefix;
    BASE_TRY(is_same(s, p, text, &same, error));
    size_t at = 0;
    while (at < s->ids.count && at < p->ids.count && s->ids.ids[at] == p->ids.ids[at]) at++;
    return base_fail(error, SIFR_USAGE,
                     "%s: llama.cpp would split \"%.60s\" into %zu tokens where this tokenizer has "
                     "%zu (they differ at token %zu): llama.cpp has neither character maps nor "
                     "Unigram, takes out no blanks and merges by score; --format gguf cannot carry "
                     "this tokenizer%s",
                     folder, text, s->ids.count, p->ids.count, at, find_remedy(folder));
}

/* llama.cpp puts a blank in front of each text, transformers' Metaspace none before another blank
 * ("prepend_scheme"). Folders that transformers 5 saves are so: it is said. */
static sifr_status try_leading(spm *s, spm_pair *p, const char *folder, const sifr_log *log,
                               sifr_error *error) {
    bool same;
    BASE_TRY(is_same(s, p, "  leading", &same, error));
    if (!same)
        base_log(log, SIFR_LOG_WARNING,
                 "%s: a text that begins with a blank gets other tokens in llama.cpp, which puts "
                 "%s blank in front of it",
                 folder, s->prefix ? "one more" : "no");
    return SIFR_OK;
}

/* A blank that llama.cpp puts behind each special token, where the tokenizer has one in front of
 * the text alone. */
static sifr_status try_special(spm *s, spm_pair *p, const char *folder, const sifr_log *log,
                               sifr_error *error) {
    char text[LONGEST + 8];
    const formats_gguf_token *t = NULL;
    bool same;
    for (size_t i = 0; i < s->specials; i++) {
        const formats_gguf_token *one = &s->tokens->list[s->special[i]];
        if (one->type != FORMATS_GGUF_TOKEN_UNKNOWN && one->size < LONGEST) t = one;
    }
    if (!t) return SIFR_OK;
    snprintf(text, sizeof text, "%.*suser", (int)t->size, t->text);
    BASE_TRY(is_same(s, p, text, &same, error));
    if (!same)
        base_log(log, SIFR_LOG_WARNING,
                 "%s: behind a special token this tokenizer puts %s blank, llama.cpp %s: \"%s\" is "
                 "%zu tokens here, %zu there, and they differ%s",
                 folder, s->prefix ? "no" : "a", s->prefix ? "one" : "none", text, p->ids.count,
                 s->ids.count,
                 s->prefix ? "; for texts that begin with a special token, such as chats, give it "
                             "--override-kv tokenizer.ggml.add_space_prefix=bool:false"
                           : "");
    return SIFR_OK;
}

static sifr_status compare(spm *s, spm_pair *p, const char *folder, bool *prefix,
                           const sifr_log *log, sifr_error *error) {
    const char *bad, *other;
    BASE_TRY(text_tokenizer_load(folder, &p->tokenizer, error));
    BASE_TRY(text_tokenizer_scratch_new(p->tokenizer, &p->scratch, error));
    BASE_TRY(try_texts(s, p, *prefix, &bad, error));
    if (bad) {
        BASE_TRY(try_texts(s, p, !*prefix, &other, error));
        if (other) return fail_text(s, p, folder, bad, *prefix, error);
        *prefix = !*prefix;
    }
    BASE_TRY(try_leading(s, p, folder, log, error));
    return try_special(s, p, folder, log, error);
}

sifr_status formats_gguf_spm_check(const formats_gguf_files *files,
                                   const formats_gguf_tokens *tokens, bool *prefix,
                                   const sifr_log *log, sifr_error *error) {
    spm s = {.tokens = tokens};
    spm_pair p = {0};
    sifr_status status = make_tables(&s, error);
    if (status == SIFR_OK) status = compare(&s, &p, files->folder, prefix, log, error);
    if (status == SIFR_OK && s.no_byte)
        status = base_fail(error, SIFR_USAGE,
                           "%s: its vocabulary lacks tokens of bytes (\"<0x00>\" to \"<0xFF>\"), "
                           "without which llama.cpp stops at a character that it does not know",
                           files->folder);
    text_tokenizer_scratch_free(p.scratch);
    text_tokenizer_free(p.tokenizer);
    text_tokenizer_ids_free(&p.ids);
    text_tokenizer_ids_free(&s.ids);
    free(s.by_text);
    free(s.special);
    return status;
}
