#include "formats/gguf/gguf_tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

bool formats_gguf_has_ends(const char *text, size_t size, const char *begin, const char *end) {
    size_t a = strlen(begin), b = strlen(end);
    return size >= a && size >= b && memcmp(text, begin, a) == 0 &&
           memcmp(text + size - b, end, b) == 0;
}

bool formats_gguf_looks_special(const char *text, size_t size) {
    static const char *const names[] = {"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (size == strlen(names[i]) && memcmp(text, names[i], size) == 0) return true;
    }
    return formats_gguf_has_ends(text, size, "<|", "|>") ||
           formats_gguf_has_ends(text, size, "<\xef\xbd\x9c", "\xef\xbd\x9c>") ||
           formats_gguf_has_ends(text, size, "<unused", ">");
}

/* A user-defined token stands with blanks where the vocabulary writes U+2581. */
static void add_user_text(formats_gguf_meta *meta, const formats_gguf_token *token, char *buffer) {
    size_t size = 0;
    for (size_t i = 0; i < token->size; i++) {
        if (token->size - i >= 3 && memcmp(token->text + i, "\xe2\x96\x81", 3) == 0) {
            buffer[size++] = ' ';
            i += 2;
        } else {
            buffer[size++] = token->text[i];
        }
    }
    formats_gguf_item_text(meta, buffer, size);
}

static sifr_status add_texts(const formats_gguf_tokens *tokens, formats_gguf_meta *meta,
                             sifr_error *error) {
    size_t longest = 1;
    char *buffer, name[32];
    for (int64_t i = 0; i < tokens->count; i++) {
        if (tokens->list[i].size > longest) longest = tokens->list[i].size;
    }
    BASE_TRY(base_alloc(longest, 1, &buffer, error));
    formats_gguf_add_array(meta, "tokenizer.ggml.tokens", FORMATS_GGUF_TEXT,
                           (uint64_t)tokens->count);
    for (int64_t i = 0; i < tokens->count; i++) {
        const formats_gguf_token *t = &tokens->list[i];
        if (!t->text) {
            snprintf(name, sizeof name, "[PAD%lld]", (long long)i);
            formats_gguf_item_text(meta, name, strlen(name));
        } else if (t->blanks) {
            add_user_text(meta, t, buffer);
        } else {
            formats_gguf_item_text(meta, t->text, t->size);
        }
    }
    free(buffer);
    return SIFR_OK;
}

static void add_types(const formats_gguf_tokens *tokens, formats_gguf_meta *meta) {
    formats_gguf_add_array(meta, "tokenizer.ggml.token_type", FORMATS_GGUF_I32,
                           (uint64_t)tokens->count);
    for (int64_t i = 0; i < tokens->count; i++) {
        const formats_gguf_token *t = &tokens->list[i];
        formats_gguf_item_i32(meta, t->text ? (int32_t)t->type : FORMATS_GGUF_TOKEN_UNUSED);
    }
}

static int compare_texts(const void *a, const void *b) {
    const formats_gguf_token *x = *(const formats_gguf_token *const *)a,
                             *y = *(const formats_gguf_token *const *)b;
    int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* llama.cpp stops (GGML_ASSERT) at a text that two ids have. */
static sifr_status check_texts(const formats_gguf_tokens *tokens, const char *folder,
                               sifr_error *error) {
    const formats_gguf_token **sorted, *twice = NULL;
    size_t count = 0;
    BASE_TRY(base_alloc((size_t)tokens->count + 1, sizeof *sorted, &sorted, error));
    for (int64_t i = 0; i < tokens->count; i++) {
        if (tokens->list[i].text) sorted[count++] = &tokens->list[i];
    }
    if (count) qsort(sorted, count, sizeof *sorted, compare_texts);
    for (size_t i = 1; i < count && !twice; i++) {
        if (compare_texts(&sorted[i - 1], &sorted[i]) == 0) twice = sorted[i];
    }
    free(sorted);
    if (!twice) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: two ids have the token \"%.*s\"; llama.cpp takes no vocabulary with a "
                     "text twice",
                     folder, (int)(twice->size < 60 ? twice->size : 60), twice->text);
}

sifr_status formats_gguf_add_tokens(const formats_gguf_tokens *tokens, const char *folder,
                                    const char *model, const char *pre, bool scores,
                                    formats_gguf_meta *meta, sifr_error *error) {
    BASE_TRY(check_texts(tokens, folder, error));
    formats_gguf_add_text(meta, "tokenizer.ggml.model", model, strlen(model));
    if (pre) formats_gguf_add_text(meta, "tokenizer.ggml.pre", pre, strlen(pre));
    BASE_TRY(add_texts(tokens, meta, error));
    if (scores) {
        formats_gguf_add_array(meta, "tokenizer.ggml.scores", FORMATS_GGUF_FLOAT,
                               (uint64_t)tokens->count);
        for (int64_t i = 0; i < tokens->count; i++)
            formats_gguf_item_float(meta, tokens->list[i].score);
    }
    add_types(tokens, meta);
    return SIFR_OK;
}
