/* Scores from merges. A file made from SentencePiece's lists all ways to make a token one behind
 * the other, in the order of its scores; whether a file is such a one, gguf_spm.c tries. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "formats/gguf/gguf_tokens.h"

typedef struct scored_text {
    formats_gguf_token *token;
    const char *text;
    size_t size;
} scored_text;

static int compare(const void *a, const void *b) {
    const scored_text *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* Both parts of a merge, a pair or a text with a blank, one behind the other; 0: no merge. */
static size_t join(const json_t *merge, char *buffer, size_t limit) {
    const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
    const char *text = json_string_value(merge), *gap = text ? strchr(text, ' ') : NULL;
    size_t a = gap ? (size_t)(gap - text) : json_string_length(left);
    size_t b = gap ? json_string_length(merge) - a - 1 : json_string_length(right);
    if (a == 0 || b == 0 || a > limit || b > limit - a) return 0;
    memcpy(buffer, gap ? text : json_string_value(left), a);
    memcpy(buffer + a, gap ? gap + 1 : json_string_value(right), b);
    return a + b;
}

static void score(const json_t *merges, scored_text *sorted, size_t count, char *buffer,
                  size_t limit) {
    const json_t *merge;
    size_t rank;
    json_array_foreach(merges, rank, merge) {
        size_t size = join(merge, buffer, limit);
        const scored_text wanted = {NULL, buffer, size};
        scored_text *at = size ? bsearch(&wanted, sorted, count, sizeof *sorted, compare) : NULL;
        if (at && at->token && at->token->score < -(float)rank) at->token->score = -(float)rank;
    }
}

sifr_status formats_gguf_score_by_merges(const formats_gguf_files *files,
                                         formats_gguf_tokens *tokens, sifr_error *error) {
    const json_t *merges = json_object_get(json_object_get(files->tokenizer, "model"), "merges");
    scored_text *sorted;
    size_t count = 0, longest = 1;
    char *buffer = NULL;
    float lowest = -(float)json_array_size(merges) - 1;
    BASE_TRY(base_alloc((size_t)tokens->count + 1, sizeof *sorted, &sorted, error));
    for (int64_t i = 0; i < tokens->count; i++) {
        formats_gguf_token *t = &tokens->list[i];
        t->score = lowest;
        if (!t->text) continue;
        sorted[count++] = (scored_text){t, t->text, t->size};
        if (t->size > longest) longest = t->size;
    }
    if (count) qsort(sorted, count, sizeof *sorted, compare);
    sifr_status status = base_alloc(longest, 1, &buffer, error);
    if (status == SIFR_OK) score(merges, sorted, count, buffer, longest);
    free(buffer);
    free(sorted);
    return status;
}
