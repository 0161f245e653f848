#include "comm/order.h"

#include "base/assert.h"

/* The launcher's lowest rank on the switch of a rank. */
static int32_t first_on_switch(const comm_spot *all, int32_t rank) {
    int32_t first = 0;
    while (all[first].leaf != all[rank].leaf) first++;
    return first;
}

int32_t comm_order_number(const comm_spot *all, int32_t size, int32_t rank) {
    base_assert(rank >= 0 && rank < size);
    int32_t number = 0, first = first_on_switch(all, rank);
    for (int32_t r = 0; r < size; r++) {
        if (all[r].leaf != all[rank].leaf)
            number += first_on_switch(all, r) < first;
        else if (all[r].first != all[rank].first)
            number += all[r].first < all[rank].first;
        else
            number += r < rank;
    }
    base_assert(number < size);
    return number;
}
