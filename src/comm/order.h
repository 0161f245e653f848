/* The order of ranks: host by host, and hosts switch by switch, however the launcher placed them.
 * So neighbours share a host wherever that is possible, and arithmetic on ranks tells where each
 * is.
 */
#ifndef COMM_ORDER_H
#define COMM_ORDER_H

#include <stdint.h>

/* Where a rank of the launcher is. */
typedef struct comm_spot {
    uint64_t leaf; /* id of its host's network switch; 0: not known */
    int32_t first; /* the launcher's lowest rank on its host */
    int32_t rest;
} comm_spot;

/* The number of the launcher's rank `rank` in that order: `rank` itself where the launcher filled
 * host by host and switch by switch. */
int32_t comm_order_number(const comm_spot *all, int32_t size, int32_t rank);

#endif
