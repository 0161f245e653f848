#include "support/on_queues.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { PAUSE_US = 60 };

bool on_queues(void) {
    return getenv("SIFR_TEST_QUEUED") != NULL;
}

sifr_status on_queues_open(device **out, sifr_error *error) {
    static atomic_uint_least64_t seed = 1;
    return device_open_queued(1, NULL, PAUSE_US, atomic_fetch_add(&seed, 1), out, error);
}
