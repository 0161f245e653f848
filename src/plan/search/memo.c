#include "plan/search/memo.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

typedef struct memo_entry {
    plan_outcome outcome;
    bool priced;
} memo_entry;

struct plan_memo {
    pthread_mutex_t lock;
    memo_entry *entries;
    size_t count, capacity;
};

sifr_status plan_memo_create(plan_memo **out, sifr_error *error) {
    BASE_TRY(base_alloc(1, sizeof **out, out, error));
    pthread_mutex_init(&(*out)->lock, NULL);
    return SIFR_OK;
}

void plan_memo_free(plan_memo *memo) {
    if (!memo) return;
    pthread_mutex_destroy(&memo->lock);
    free(memo->entries);
    free(memo);
}

/* Different padding bytes only cost another plan. */
static bool is_of(const memo_entry *entry, const plan_settings *settings) {
    return memcmp(&entry->outcome.settings, settings, sizeof *settings) == 0;
}

bool plan_memo_find(plan_memo *memo, const plan_settings *settings, bool priced,
                    plan_outcome *out) {
    bool found = false;
    if (!memo) return false;
    pthread_mutex_lock(&memo->lock);
    for (size_t i = 0; i < memo->count && !found; i++) {
        const memo_entry *entry = &memo->entries[i];
        found = (entry->priced || !priced) && is_of(entry, settings);
        if (found) *out = entry->outcome;
    }
    pthread_mutex_unlock(&memo->lock);
    return found;
}

void plan_memo_keep(plan_memo *memo, const plan_outcome *outcome, bool priced) {
    if (!memo) return;
    pthread_mutex_lock(&memo->lock);
    if (base_grow(&memo->entries, &memo->capacity, memo->count + 1, sizeof *memo->entries, NULL) ==
        SIFR_OK)
        memo->entries[memo->count++] = (memo_entry){*outcome, priced};
    pthread_mutex_unlock(&memo->lock);
}
