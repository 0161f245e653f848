/* The beginning of a call that all ranks make: one message says whether a rank refuses it, and
 * whether all give it the same. */
#ifndef ENGINE_MEETING_H
#define ENGINE_MEETING_H

#include "comm/comm.h"

typedef struct engine_meeting {
    int64_t count;  /* of this rank, at least 0; then of all ranks */
    uint64_t given; /* a hash of what all ranks give alike */
    bool refuses;   /* this rank cannot make the call; then, some rank cannot */
    bool differs;   /* then: none refuses, and not all gave the same */
} engine_meeting;

/* All ranks of the group call it. */
sifr_status engine_meet(comm_group *group, engine_meeting *meeting,
                        sifr_error *error) SIFR_MUST_CHECK;

#endif
