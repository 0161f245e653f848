/* Ranks as a caller holds them. */
#ifndef API_RANKS_H
#define API_RANKS_H

#include "comm/comm.h"
#include "sifr/ranks.h"

struct sifr_ranks {
    comm_group *group;
    bool compared; /* the ranks' programs */
};

/* Before anything else of all ranks: another program may communicate differently. */
sifr_status api_ranks_compare(sifr_ranks *ranks, sifr_error *error) SIFR_MUST_CHECK;

#endif
