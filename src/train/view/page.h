/* A page of HTML that shows runs, and needs nothing beside it: no network, no other file. What it
 * takes does not grow with the length of the runs: their logs are thinned while they are read. */
#ifndef TRAIN_VIEW_PAGE_H
#define TRAIN_VIEW_PAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef struct train_page_request {
    const char *const *runs; /* [count] output folders */
    size_t count;
    const char *trace; /* of the only run; NULL: trace.json in each folder */
    const char *path;  /* of the page */
    const sifr_log *log;
} train_page_request;

typedef struct train_page_result {
    int64_t runs, unread, records; /* folders that are in it; that could not be read; lines */
    uint64_t bytes;
} train_page_result;

/* A folder that cannot be read is warned of, and stands in the page as such; SIFR_FAILED if none
 * can. */
sifr_status train_page_write(const train_page_request *request, train_page_result *out,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
