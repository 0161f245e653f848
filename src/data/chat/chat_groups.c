#include "data/chat/chat_groups.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"

enum { STEPS_A_RUN = 50, LEAST_RUNS = 4, EPOCHS = 2 };

typedef struct group_row {
    int64_t row, length, place;
} group_row;

/* A step may have rows of two epochs, so the orders of two are kept. */
typedef struct group_epoch {
    bool there;
    uint64_t seed;
    int64_t epoch;
    group_row *rows; /* by place */
} group_epoch;

struct data_chat_groups {
    pthread_mutex_t lock;
    int64_t run; /* places of a run */
    group_epoch epochs[EPOCHS];
};

sifr_status data_chat_groups_make(int64_t windows, int64_t batch, data_chat_groups **out,
                                  sifr_error *error) {
    data_chat_groups *g;
    BASE_TRY(base_alloc(1, sizeof *g, &g, error));
    int64_t steps = base_min_i64(windows / batch / LEAST_RUNS, STEPS_A_RUN);
    g->run = base_max_i64(steps, 1) * base_min_i64(batch, windows);
    g->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    sifr_status status = SIFR_OK;
    for (int i = 0; i < EPOCHS && status == SIFR_OK; i++)
        status = base_alloc((size_t)windows, sizeof *g->epochs[i].rows, &g->epochs[i].rows, error);
    if (status == SIFR_OK)
        *out = g;
    else
        data_chat_groups_free(g);
    return status;
}

void data_chat_groups_free(data_chat_groups *groups) {
    if (!groups) return;
    for (int i = 0; i < EPOCHS; i++) free(groups->epochs[i].rows);
    pthread_mutex_destroy(&groups->lock);
    free(groups);
}

static int longest_first(const void *a, const void *b) {
    const group_row *x = a, *y = b;
    if (x->length != y->length) return x->length < y->length ? 1 : -1;
    return (x->place > y->place) - (x->place < y->place);
}

static void work_out(const data_chat_groups *g, const data_chat_order *order, group_epoch *e) {
    int64_t longest = 0;
    for (int64_t i = 0; i < order->windows; i++) {
        int64_t row = order->row(order->rows, e->seed, e->epoch, i);
        e->rows[i] = (group_row){row, order->length(order->rows, row), i};
    }
    for (int64_t first = 0; first < order->windows; first += g->run) {
        size_t count = (size_t)base_min_i64(g->run, order->windows - first);
        qsort(e->rows + first, count, sizeof *e->rows, longest_first);
        if (e->rows[first].length > e->rows[longest].length) longest = first;
    }
    group_row swapped = e->rows[0];
    e->rows[0] = e->rows[longest];
    e->rows[longest] = swapped;
}

int64_t data_chat_groups_at(data_chat_groups *groups, const data_chat_order *order, uint64_t seed,
                            int64_t epoch, int64_t place) {
    group_epoch *e = &groups->epochs[epoch % EPOCHS];
    pthread_mutex_lock(&groups->lock);
    if (!e->there || e->seed != seed || e->epoch != epoch) {
        e->there = true, e->seed = seed, e->epoch = epoch;
        work_out(groups, order, e);
    }
    int64_t row = e->rows[place].row;
    pthread_mutex_unlock(&groups->lock);
    return row;
}
