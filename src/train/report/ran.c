#include "train/report/ran.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

/* What a rank tells the others. */
typedef struct rank_ran {
    device_ran ran;
    char device[400];
    char exchange_why[256];
    int32_t gpu, exchange;
} rank_ran;

static void look_at(const device *dev, rank_ran *out) {
    *out = (rank_ran){.gpu = device_is_hidden(dev)};
    device_ran_of(dev, &out->ran);
    device_describe(dev, out->device, sizeof out->device);
}

/* The way of the group that has the worst one. */
static void look_at_groups(const engine_groups *groups, rank_ran *out) {
    engine_group_of list[ENGINE_GROUPS];
    int count = engine_groups_list(groups, list);
    for (int i = 0; i < count; i++) {
        const char *why;
        comm_exchange way = comm_exchange_of(list[i].group, &why);
        if ((int32_t)way <= out->exchange) continue;
        out->exchange = (int32_t)way;
        snprintf(out->exchange_why, sizeof out->exchange_why, "%s", why);
    }
}

static const char *text_of(const rank_ran *all, int32_t rank, size_t at) {
    return (const char *)&all[rank] + at;
}

/* The texts at `at` of all ranks, each once, with its rank. */
static void join(const rank_ran *all, int32_t ranks, size_t at, char *out, size_t size) {
    size_t used = 0;
    out[0] = '\0';
    for (int32_t r = 0; r < ranks && used < size; r++) {
        const char *text = text_of(all, r, at);
        bool said = text[0] == '\0';
        for (int32_t q = 0; q < r && !said; q++) said = strcmp(text_of(all, q, at), text) == 0;
        if (said) continue;
        used += (size_t)snprintf(out + used, size - used, used ? "; " : "");
        if (r > 0 && used < size)
            used += (size_t)snprintf(out + used, size - used, "rank %d: ", (int)r);
        if (used < size) used += (size_t)snprintf(out + used, size - used, "%s", text);
    }
}

static void sum_up(const rank_ran *all, int32_t ranks, train_ran *out) {
    *out = (train_ran){.exchange = COMM_EXCHANGE_NONE};
    for (int32_t r = 0; r < ranks; r++) {
        const device_ran *ran = &all[r].ran;
        out->gpu |= all[r].gpu;
        out->library_products += ran->library_products;
        out->own_products += ran->own_products;
        out->word_waits += ran->word_waits;
        out->host_waits += ran->host_waits;
        out->unpinned_bytes += ran->unpinned_bytes;
        if (all[r].exchange > (int32_t)out->exchange)
            out->exchange = (comm_exchange)all[r].exchange;
    }
    join(all, ranks, offsetof(rank_ran, device), out->device, sizeof out->device);
    join(all, ranks, offsetof(rank_ran, ran.products), out->products, sizeof out->products);
    join(all, ranks, offsetof(rank_ran, ran.own_why), out->own_why, sizeof out->own_why);
    join(all, ranks, offsetof(rank_ran, ran.waits_why), out->waits_why, sizeof out->waits_why);
    join(all, ranks, offsetof(rank_ran, exchange_why), out->exchange_why, sizeof out->exchange_why);
}

void train_ran_alone(const device *dev, train_ran *out) {
    rank_ran mine;
    look_at(dev, &mine);
    sum_up(&mine, 1, out);
}

sifr_status train_ran_of_all(const sifr_engine *engine, comm_group *group, train_ran *out,
                             sifr_error *error) {
    int32_t ranks = comm_size(group);
    rank_ran mine, *all;
    sifr_status status = base_alloc((size_t)ranks, sizeof *all, &all, error);
    BASE_TRY(comm_agree_status(group, status, error));
    look_at(engine_device(engine), &mine);
    look_at_groups(engine_groups_of(engine), &mine);
    status = comm_all_gather_control(group, &mine, sizeof mine, all, error);
    if (status == SIFR_OK) sum_up(all, ranks, out);
    free(all);
    return status;
}
