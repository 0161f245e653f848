#include "comm/nccl/nccl_link.h"

#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/heap.h"

static const double patience = 5; /* seconds in which the other ranks may close, too */

struct nccl_link {
    const nccl_library *library;
    nccl_communicator communicator; /* NULL: aborted */
};

sifr_status nccl_link_name(const nccl_library *library, nccl_name *out, sifr_error *error) {
    return nccl_library_check(library, library->ncclGetUniqueId(out), "ncclGetUniqueId", error);
}

sifr_status nccl_link_begin(const nccl_library *library, const nccl_name *name, int32_t ranks,
                            int32_t rank, nccl_link **out, sifr_error *error) {
    base_assert(rank >= 0 && rank < ranks);
    nccl_settings settings = NCCL_SETTINGS;
    nccl_link *link;
    BASE_TRY(base_alloc(1, sizeof *link, &link, error));
    link->library = library;
    nccl_result result =
        library->ncclCommInitRankConfig(&link->communicator, ranks, *name, rank, &settings);
    sifr_status status = nccl_library_check(library, result, "ncclCommInitRankConfig", error);
    if (status != SIFR_OK) {
        nccl_link_abort(link);
        free(link);
        return status;
    }
    *out = link;
    return SIFR_OK;
}

static sifr_status fail_aborted(sifr_error *error) {
    return base_fail(error, SIFR_FAILED, "NCCL: an earlier exchange failed");
}

sifr_status nccl_link_poll(nccl_link *link, bool *done, sifr_error *error) {
    nccl_result state = NCCL_OK;
    *done = false;
    if (!link->communicator) return fail_aborted(error);
    nccl_result result = link->library->ncclCommGetAsyncError(link->communicator, &state);
    BASE_TRY(nccl_library_check(link->library, result, "ncclCommGetAsyncError", error));
    BASE_TRY(nccl_library_check(link->library, state, "between hosts", error));
    *done = state == NCCL_OK;
    return SIFR_OK;
}

static sifr_status add_part(const nccl_link *link, const nccl_part *part, nccl_stream stream,
                            sifr_error *error) {
    const nccl_library *l = link->library;
    size_t bytes = (size_t)part->bytes;
    if (part->send)
        BASE_TRY(nccl_library_check(
            l, l->ncclSend(part->send, bytes, NCCL_BYTES, part->to, link->communicator, stream),
            "ncclSend", error));
    if (part->receive)
        BASE_TRY(nccl_library_check(
            l,
            l->ncclRecv(part->receive, bytes, NCCL_BYTES, part->from, link->communicator, stream),
            "ncclRecv", error));
    return SIFR_OK;
}

/* A group that was begun is ended whatever happens, since it is the thread's. */
sifr_status nccl_link_exchange(nccl_link *link, const nccl_part *parts, int32_t count,
                               nccl_stream stream, sifr_error *error) {
    const nccl_library *l = link->library;
    sifr_status status = SIFR_OK;
    if (!link->communicator) return fail_aborted(error);
    BASE_TRY(nccl_library_check(l, l->ncclGroupStart(), "ncclGroupStart", error));
    for (int32_t i = 0; i < count && status == SIFR_OK; i++)
        status = add_part(link, &parts[i], stream, error);
    nccl_result result = l->ncclGroupEnd();
    return status == SIFR_OK ? nccl_library_check(l, result, "ncclGroupEnd", error) : status;
}

sifr_status nccl_link_gather(nccl_link *link, const void *mine, int64_t bytes, void *all,
                             nccl_stream stream, sifr_error *error) {
    base_assert(bytes > 0);
    const nccl_library *l = link->library;
    if (!link->communicator) return fail_aborted(error);
    return nccl_library_check(
        l, l->ncclAllGather(mine, all, (size_t)bytes, NCCL_BYTES, link->communicator, stream),
        "ncclAllGather", error);
}

void nccl_link_abort(nccl_link *link) {
    if (link->communicator) link->library->ncclCommAbort(link->communicator);
    link->communicator = NULL;
}

/* Whether all ranks have finalized, which destroying needs. */
static bool finalize(nccl_link *link) {
    double begun = base_seconds();
    bool done = false;
    nccl_result result = link->library->ncclCommFinalize(link->communicator);
    if (result != NCCL_OK && result != NCCL_IN_PROGRESS) return false;
    while (nccl_link_poll(link, &done, NULL) == SIFR_OK && !done) {
        struct timespec nap = {.tv_nsec = 100000};
        if (base_seconds() - begun > patience) return false;
        nanosleep(&nap, NULL);
    }
    return done;
}

void nccl_link_close(nccl_link *link) {
    if (!link) return;
    if (link->communicator && finalize(link)) {
        link->library->ncclCommDestroy(link->communicator);
        link->communicator = NULL;
    }
    nccl_link_abort(link);
    free(link);
}
