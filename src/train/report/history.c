#include "train/report/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "base/json.h"
#include "train/report/metric_list.h"

enum {
    EVALUATED = TRAIN_HISTORY_EVAL_LOSS,
    PIECE = 4096, /* numbers that the array grows by: doubling it would take twice the bytes */
    MOST_NUMBERS = TRAIN_HISTORY_BYTES / (int)sizeof(double)
};

/* A record begins with its step and with which keys it has, in one number of 64 bits. The numbers
 * of these follow. */
enum { KEY_BITS = 24 };

/* NULL: there is no more. */
static const char *key_name(int key, char out[64]) {
    return key < KEY_BITS ? train_metric_history(key, out) : NULL;
}

static uint64_t head_at(const train_history *h, size_t at) {
    uint64_t head;
    memcpy(&head, &h->numbers[at], sizeof head);
    return head;
}

static unsigned keys_at(const train_history *h, size_t at) {
    return (unsigned)(head_at(h, at) & ((1u << KEY_BITS) - 1));
}

static size_t size_at(const train_history *h, size_t at) {
    return 1 + (size_t)__builtin_popcount(keys_at(h, at));
}

static bool is_evaluation(const train_history *h, size_t at) {
    return keys_at(h, at) >> EVALUATED & 1;
}

void train_history_begin(train_history *h) {
    *h = (train_history){.last_step = -1, .last_loss = NAN};
}

void train_history_free(train_history *h) {
    free(h->numbers);
    train_history_begin(h);
}

static bool is_full(const train_history *h) {
    return h->count > TRAIN_HISTORY_MOST || h->used > MOST_NUMBERS;
}

/* Every second one goes, of steps or of evaluations. */
static void thin(train_history *h, bool evaluations) {
    size_t to = 0, seen = 0, left = 0;
    for (size_t at = 0, size; at < h->used; at += size) {
        size = size_at(h, at);
        if (is_evaluation(h, at) == evaluations && seen++ % 2) continue;
        memmove(h->numbers + to, h->numbers + at, size * sizeof *h->numbers);
        to += size;
        left++;
    }
    if (evaluations) h->evaluations -= h->count - left;
    h->count = left;
    h->used = to;
    h->next_index = h->next_at = 0;
}

static sifr_status reserve(train_history *h, size_t more, sifr_error *error) {
    if (h->used + more <= h->capacity) return SIFR_OK;
    size_t capacity = h->capacity + PIECE;
    double *numbers = realloc(h->numbers, capacity * sizeof *numbers);
    if (!numbers) return base_fail_alloc(error, capacity * sizeof *numbers);
    h->numbers = numbers;
    h->capacity = capacity;
    return SIFR_OK;
}

static void note_evaluation(train_history *h, int64_t step, double loss) {
    h->evaluations++;
    h->last_step = step;
    if (!isnan(loss)) h->last_loss = loss;
}

sifr_status train_history_add(train_history *h, const json_t *record, sifr_error *error) {
    double numbers[1 + KEY_BITS];
    char out[64];
    const char *name;
    size_t count = 1;
    int64_t step = json_integer_value(json_object_get(record, "step"));
    uint64_t head = (uint64_t)step << KEY_BITS;
    for (int k = 0; (name = key_name(k, out)); k++) {
        const json_t *value = json_object_get(record, name);
        if (!value) continue;
        head |= 1u << k;
        numbers[count++] = json_is_number(value) ? json_number_value(value) : NAN;
        if (k == EVALUATED) note_evaluation(h, step, numbers[count - 1]);
    }
    memcpy(numbers, &head, sizeof head);
    BASE_TRY(reserve(h, count, error));
    memcpy(h->numbers + h->used, numbers, count * sizeof *numbers);
    h->used += count;
    h->count++;
    if (is_full(h)) thin(h, h->evaluations > h->count / 2);
    return SIFR_OK;
}

json_t *train_history_entry(void *user, size_t index) {
    train_history *h = user;
    char out[64];
    const char *name;
    if (index < h->next_index) h->next_index = h->next_at = 0;
    for (; h->next_index < index; h->next_index++) h->next_at += size_at(h, h->next_at);
    const double *number = h->numbers + h->next_at + 1;
    json_int_t step = (json_int_t)(head_at(h, h->next_at) >> KEY_BITS);
    unsigned has = keys_at(h, h->next_at);
    json_t *entry = json_object();
    bool whole = entry;
    for (int k = 0; whole && (name = key_name(k, out)); k++) {
        if (k == 1) whole = json_object_set_new(entry, "step", json_integer(step)) == 0;
        if (whole && has >> k & 1)
            whole = json_object_set_new(entry, name, base_json_finite(*number++)) == 0;
    }
    if (whole) return entry;
    json_decref(entry);
    return NULL;
}
