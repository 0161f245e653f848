#include "train/report/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED = 4 };

static bool is_new(const int32_t *ranks, int count, int32_t rank) {
    for (int i = 0; i < count; i++)
        if (ranks[i] == rank) return false;
    return true;
}

/* The ranks after the word, in the message's order; returns their number. */
static int find_ranks(const char *message, int32_t size, int32_t ranks[NAMED]) {
    static const char word[] = "rank ";
    int count = 0;
    for (const char *at = message; count < NAMED && (at = strstr(at, word)) != NULL;) {
        char *end;
        at += sizeof word - 1;
        long rank = strtol(at, &end, 10);
        if (end > at && rank >= 0 && rank < size && is_new(ranks, count, (int32_t)rank))
            ranks[count++] = (int32_t)rank;
    }
    return count;
}

void train_name_places(const plan_mesh *mesh, sifr_error *error) {
    int32_t ranks[NAMED], size = plan_mesh_ranks(mesh, PLAN_WORLD);
    char place[PLAN_MESH_LENGTH];
    if (!error || size == mesh->ranks[PLAN_AXIS_SHARD]) return;
    int count = find_ranks(error->message, size, ranks);
    for (int i = 0; i < count; i++) {
        plan_mesh there = plan_mesh_at(mesh, ranks[i]);
        size_t used = strlen(error->message);
        snprintf(error->message + used, sizeof error->message - used, "%srank %d: %s%s",
                 i ? "; " : " (", (int)ranks[i], plan_mesh_place_text(&there, place),
                 i + 1 == count ? ")" : "");
    }
}
