#include "data/token_scores.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"

/* --- reading --- */

static sifr_status wrong(const data_token_scores *s, const char *what, sifr_error *error) {
    return base_fail(error, SIFR_FAILED, "%s: %s; make it with `sifr score`", s->path, what);
}

/* A tensor of the type and shape [first] or [first, second]; first -1: any. */
static sifr_status take(const data_token_scores *s, const char *name, base_dtype dtype,
                        int64_t first, int64_t second, const formats_tensor **out,
                        sifr_error *error) {
    const formats_tensor *t = formats_safetensors_find(&s->file, name);
    int rank = second ? 2 : 1;
    *out = t;
    if (!t)
        return base_fail(error, SIFR_FAILED,
                         "%s: no file of scores: the tensor %s is missing; make it with `sifr "
                         "score`",
                         s->path, name);
    bool fits = t->dtype == dtype && t->rank == rank && (first < 0 || t->shape[0] == first) &&
                (rank < 2 || second < 0 || t->shape[1] == second) &&
                (uintptr_t)t->data % (size_t)base_dtype_bytes(dtype) == 0;
    if (fits) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: the tensor %s has another type, shape or place than `sifr score` gives "
                     "it; make the file with it",
                     s->path, name);
}

static sifr_status find_arrays(data_token_scores *s, sifr_error *error) {
    const formats_tensor *t;
    BASE_TRY(take(s, "offsets", BASE_INT64, -1, 0, &t, error));
    if (t->shape[0] < 1) return wrong(s, "offsets are empty", error);
    s->offsets = t->data, s->rows = t->shape[0] - 1;
    BASE_TRY(take(s, "ids", BASE_INT32, -1, 0, &t, error));
    s->ids = t->data, s->entries = t->shape[0];
    BASE_TRY(take(s, "logprobs", BASE_FP32, s->entries, 0, &t, error));
    s->logprobs = t->data;
    BASE_TRY(take(s, "temperature", BASE_FP32, 1, 0, &t, error));
    float temperature;
    memcpy(&temperature, t->data, sizeof temperature);
    s->temperature = (double)temperature;
    if (!(temperature > 0) || !isfinite(temperature))
        return wrong(s, "the temperature is not above 0", error);
    if (!formats_safetensors_find(&s->file, "top_ids")) return SIFR_OK;
    BASE_TRY(take(s, "top_ids", BASE_INT32, s->entries, -1, &t, error));
    s->top_ids = t->data, s->top = t->shape[1];
    if (s->top < 1) return wrong(s, "there are no top words", error);
    BASE_TRY(take(s, "top_logprobs", BASE_FP32, s->entries, s->top, &t, error));
    s->top_logprobs = t->data;
    return SIFR_OK;
}

static sifr_status check_offsets(const data_token_scores *s, sifr_error *error) {
    bool rising = s->offsets[0] == 0 && s->offsets[s->rows] == s->entries;
    for (int64_t r = 0; rising && r < s->rows; r++)
        rising = s->offsets[r] >= 0 && s->offsets[r] <= s->offsets[r + 1];
    return rising ? SIFR_OK : wrong(s, "its offsets do not rise from 0 to its entries", error);
}

static bool is_log_probability(float value) {
    return isfinite(value) && value <= 1e-3f; /* a rounded logarithm of 1 may be above 0 */
}

static sifr_status check_entries(const data_token_scores *s, int64_t words, sifr_error *error) {
    int64_t limit = words > 0 ? words : INT32_MAX;
    for (int64_t i = 0; i < s->entries; i++) {
        double sum = 0;
        if (!is_log_probability(s->logprobs[i]))
            return wrong(s, "a log-probability is above 0 or no number", error);
        for (int64_t k = 0; k < s->top; k++) {
            int64_t at = i * s->top + k;
            if (s->top_ids[at] < 0 || s->top_ids[at] >= limit)
                return base_fail(error, SIFR_FAILED,
                                 "%s: the word %d, but the model has %lld: the other model must "
                                 "have the same tokenizer",
                                 s->path, s->top_ids[at], (long long)limit);
            if (!is_log_probability(s->top_logprobs[at]))
                return wrong(s, "a log-probability is above 0 or no number", error);
            sum += exp((double)s->top_logprobs[at]);
        }
        if (sum > 1.01)
            return wrong(s, "the top words of a token are likelier than all words", error);
    }
    return SIFR_OK;
}

static int compare_ids(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* A word twice in an entry would count twice. */
static sifr_status check_twice(const data_token_scores *s, sifr_error *error) {
    int32_t *sorted;
    bool twice = false;
    if (!s->top || !s->entries) return SIFR_OK; /* without entries top may be any number */
    BASE_TRY(base_alloc((size_t)s->top, sizeof *sorted, &sorted, error));
    for (int64_t i = 0; !twice && i < s->entries; i++) {
        memcpy(sorted, s->top_ids + i * s->top, (size_t)s->top * sizeof *sorted);
        qsort(sorted, (size_t)s->top, sizeof *sorted, compare_ids);
        for (int64_t k = 1; k < s->top; k++) twice |= sorted[k] == sorted[k - 1];
    }
    free(sorted);
    return twice ? wrong(s, "a word stands twice among the top words of a token", error) : SIFR_OK;
}

static sifr_status open_arrays(const char *path, data_token_scores *out, sifr_error *error) {
    *out = (data_token_scores){0};
    if (strlen(path) >= sizeof out->path)
        return base_fail(error, SIFR_USAGE, "%.200s…: path too long", path);
    memcpy(out->path, path, strlen(path) + 1);
    BASE_TRY(formats_safetensors_open(path, &out->file, error));
    sifr_status status = find_arrays(out, error);
    if (status != SIFR_OK) data_token_scores_close(out);
    return status;
}

sifr_status data_token_scores_open(const char *path, int64_t words, data_token_scores *out,
                                   sifr_error *error) {
    BASE_TRY(open_arrays(path, out, error));
    sifr_status status = check_offsets(out, error);
    if (status == SIFR_OK) status = check_entries(out, words, error);
    if (status == SIFR_OK) status = check_twice(out, error);
    if (status != SIFR_OK) data_token_scores_close(out);
    return status;
}

sifr_status data_token_scores_peek(const char *path, int64_t *top, double *temperature,
                                   sifr_error *error) {
    data_token_scores scores;
    BASE_TRY(open_arrays(path, &scores, error));
    *top = scores.top;
    *temperature = scores.temperature;
    data_token_scores_close(&scores);
    return SIFR_OK;
}

void data_token_scores_close(data_token_scores *scores) {
    formats_safetensors_close(&scores->file);
    *scores = (data_token_scores){0};
}

/* --- writing --- */

/* A file without a name beside the path, so that it is on the same disk. */
static sifr_status open_beside(const char *path, FILE **out, sifr_error *error) {
    char name[BASE_PATH_LENGTH + 16];
    snprintf(name, sizeof name, "%s.tmp-XXXXXX", path);
    int file = mkostemp(name, O_CLOEXEC);
    if (file >= 0) unlink(name);
    *out = file >= 0 ? fdopen(file, "w+") : NULL;
    if (*out) return SIFR_OK;
    sifr_status status = base_fail_errno(error, errno, "%s: cannot write beside it", path);
    if (file >= 0) close(file);
    return status;
}

sifr_status data_score_writer_open(const char *path, int64_t rows, int64_t entries, int64_t top,
                                   double temperature, data_score_writer *out, sifr_error *error) {
    base_assert(rows >= 0 && entries >= 0 && top >= 0);
    *out = (data_score_writer){
        .rows = rows, .entries = entries, .top = top, .temperature = temperature};
    if (strlen(path) >= sizeof out->path)
        return base_fail(error, SIFR_USAGE, "%.200s…: path too long", path);
    memcpy(out->path, path, strlen(path) + 1);
    size_t count = (size_t)entries;
    sifr_status status = base_alloc((size_t)rows + 1, sizeof *out->offsets, &out->offsets, error);
    if (status == SIFR_OK) status = base_alloc(count, sizeof *out->ids, &out->ids, error);
    if (status == SIFR_OK) status = base_alloc(count, sizeof *out->logprobs, &out->logprobs, error);
    if (status == SIFR_OK && top) status = open_beside(path, &out->top_ids, error);
    if (status == SIFR_OK && top) status = open_beside(path, &out->top_probs, error);
    if (status != SIFR_OK) data_score_writer_free(out);
    return status;
}

void data_score_writer_free(data_score_writer *writer) {
    free(writer->offsets);
    free(writer->ids);
    free(writer->logprobs);
    if (writer->top_ids) fclose(writer->top_ids);
    if (writer->top_probs) fclose(writer->top_probs);
    *writer = (data_score_writer){0};
}

sifr_status data_score_writer_put(data_score_writer *w, float logprob, const int32_t *top_ids,
                                  const float *top_logprobs, sifr_error *error) {
    size_t top = (size_t)w->top;
    if (w->put >= w->entries)
        return base_fail(error, SIFR_FAILED, "%s: more entries than were counted", w->path);
    w->logprobs[w->put++] = logprob;
    errno = 0;
    if (!top || (fwrite(top_ids, sizeof *top_ids, top, w->top_ids) == top &&
                 fwrite(top_logprobs, sizeof *top_logprobs, top, w->top_probs) == top))
        return SIFR_OK;
    return base_fail_errno(error, errno ? errno : EIO, "%s: cannot write", w->path);
}

static sifr_status copy_from(formats_safetensors_writer *to, FILE *from, const char *path,
                             sifr_error *error) {
    char piece[1 << 16];
    size_t got;
    errno = 0;
    if (fflush(from) != 0 || fseek(from, 0, SEEK_SET) != 0)
        return base_fail_errno(error, errno ? errno : EIO, "%s: cannot write", path);
    while ((got = fread(piece, 1, sizeof piece, from)) > 0)
        BASE_TRY(formats_safetensors_append(to, piece, got, error));
    return ferror(from)
               ? base_fail(error, SIFR_FAILED, "%s: cannot read what was written beside it", path)
               : SIFR_OK;
}

/* Tensors in the order of the format: by size of elements and type, then by name. */
static sifr_status append_all(const data_score_writer *w, formats_safetensors_writer *to,
                              sifr_error *error) {
    size_t count = (size_t)w->entries;
    float temperature = (float)w->temperature;
    BASE_TRY(formats_safetensors_append(to, w->offsets, ((size_t)w->rows + 1) * sizeof *w->offsets,
                                        error));
    BASE_TRY(formats_safetensors_append(to, w->logprobs, count * sizeof *w->logprobs, error));
    BASE_TRY(formats_safetensors_append(to, &temperature, sizeof temperature, error));
    if (w->top) BASE_TRY(copy_from(to, w->top_probs, w->path, error));
    BASE_TRY(formats_safetensors_append(to, w->ids, count * sizeof *w->ids, error));
    return w->top ? copy_from(to, w->top_ids, w->path, error) : SIFR_OK;
}

sifr_status data_score_writer_commit(data_score_writer *w, sifr_error *error) {
    formats_safetensors_writer to;
    const formats_tensor_spec specs[] = {
        {"offsets", BASE_INT64, 1, {w->rows + 1}},
        {"logprobs", BASE_FP32, 1, {w->entries}},
        {"temperature", BASE_FP32, 1, {1}},
        {"top_logprobs", BASE_FP32, 2, {w->entries, w->top}},
        {"ids", BASE_INT32, 1, {w->entries}},
        {"top_ids", BASE_INT32, 2, {w->entries, w->top}},
    };
    const formats_tensor_spec plain[] = {specs[0], specs[1], specs[2], specs[4]};
    if (w->put != w->entries)
        return base_fail(error, SIFR_FAILED, "%s: %lld entries of %lld", w->path, (long long)w->put,
                         (long long)w->entries);
    BASE_TRY(formats_safetensors_writer_open(&to, w->path, w->top ? specs : plain, w->top ? 6 : 4,
                                             error));
    sifr_status status = append_all(w, &to, error);
    if (status != SIFR_OK) {
        formats_safetensors_abort(&to);
        return status;
    }
    return formats_safetensors_commit(&to, error);
}

/* --- top words --- */

static bool is_before(const float *logits, int32_t a, int32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

/* Moves place `at` of a heap down, whose first is the last of its words in their order. */
static void sink(const float *logits, int32_t *heap, int64_t count, int64_t at) {
    base_assert(at >= 0 && at < count);
    for (;;) {
        int64_t next = 2 * at + 1;
        if (next >= count) return;
        if (next + 1 < count && is_before(logits, heap[next], heap[next + 1])) next++;
        if (is_before(logits, heap[next], heap[at])) return;
        int32_t kept = heap[at];
        heap[at] = heap[next];
        heap[next] = kept;
        at = next;
    }
}

void data_top_words(const float *logits, int64_t words, double temperature, int64_t top,
                    int32_t *ids, float *logprobs) {
    base_assert(top <= words && temperature > 0);
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < words; i++) largest = fmax(largest, (double)logits[i]);
    for (int64_t i = 0; i < words; i++) sum += exp(((double)logits[i] - largest) / temperature);
    for (int64_t i = 0; i < top; i++) ids[i] = (int32_t)i;
    for (int64_t i = top / 2; i-- > 0;) sink(logits, ids, top, i);
    for (int64_t i = top; i < words; i++) {
        if (!is_before(logits, (int32_t)i, ids[0])) continue;
        ids[0] = (int32_t)i;
        sink(logits, ids, top, 0);
    }
    for (int64_t i = top; i-- > 1;) { /* the last goes behind */
        int32_t last = ids[0];
        ids[0] = ids[i];
        ids[i] = last;
        sink(logits, ids, i, 0);
    }
    for (int64_t i = 0; i < top; i++)
        logprobs[i] = (float)(((double)logits[ids[i]] - largest) / temperature - log(sum));
}
