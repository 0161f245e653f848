/* Who is in a group that is split off, whatever the transport. */
#include <stdio.h>

#include "base/assert.h"
#include "comm/transport.h"

/* Whether member `a` of `all` comes before `b` in their group. */
static bool comes_before(const comm_member *all, int32_t a, int32_t b) {
    if (all[a].key != all[b].key) return all[a].key < all[b].key;
    return a < b;
}

/* Insertion: most splits keep the order, and then each rank is placed at once. */
int32_t comm_choose_members(const comm_member *all, int32_t size, int32_t color,
                            int32_t *world_of) {
    base_assert(color >= 0);
    int32_t count = 0;
    for (int32_t r = 0; r < size; r++) {
        int32_t at = count;
        if (all[r].color != color) continue;
        for (; at > 0 && comes_before(all, r, world_of[at - 1]); at--)
            world_of[at] = world_of[at - 1];
        world_of[at] = r;
        count++;
    }
    for (int32_t i = 0; i < count; i++) world_of[i] = all[world_of[i]].world;
    return count;
}

void comm_inherit(comm_group *group, const comm_group *parent, const comm_part *part) {
    base_assert(!part->name || strlen(part->name) < COMM_NAME);
    group->transport = parent->transport;
    group->timeout = parent->timeout;
    group->peers = part->peers;
    snprintf(group->name, sizeof group->name, "%s", part->name ? part->name : "");
}

sifr_status comm_split(comm_group *parent, const comm_part *part, comm_group **out,
                       sifr_error *error) {
    base_assert((int)part->lane >= 0 && part->lane < COMM_LANES);
    *out = NULL;
    return parent->transport->split(parent, part, out, error);
}
