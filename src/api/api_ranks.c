#include "api/api_ranks.h"

#include <stdlib.h>

#include "api/api_context.h"
#include "base/heap.h"
#include "base/inside.h"
#include "comm/launcher.h"
#include "train/prepare/agreement.h"

int sifr_ranks_started(void) {
    BASE_INSIDE;
    int ranks = 1;
    return comm_under_launcher(&ranks) ? ranks : 1;
}

static sifr_status open_group(const sifr_context *context, const sifr_ranks_options *options,
                              comm_group **out, sifr_error *error) {
    const comm_options start = {.log = &context->log,
                                .start = {.limit = options->late ? options->start_limit : 0,
                                          .late = options->late,
                                          .user = options->user}};
    if (options->alone || sifr_ranks_started() < 2) return comm_open_self(out, error);
    return comm_open(COMM_MPI, &start, out, error);
}

static sifr_status check_start(const sifr_ranks_options *options, sifr_error *error) {
    double limit = options->start_limit;
    if (!(limit >= 0 && limit <= 1e9))
        return base_fail(error, SIFR_USAGE,
                         "sifr_ranks_options.start_limit: %g; give seconds from 0 (no limit) to "
                         "1e9",
                         limit);
    if (limit == 0 || options->late) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "sifr_ranks_options.start_limit: %g, without `late`, which alone can end the "
                     "wait; give both, or 0",
                     limit);
}

sifr_status sifr_ranks_open(sifr_context *context, const sifr_ranks_options *options,
                            sifr_ranks **out, sifr_error *error) {
    BASE_ENTER(error, context, out);
    sifr_ranks_options known;
    sifr_ranks *ranks;
    BASE_TRY(api_take_options("sifr_ranks_options", options, sizeof known, &known, error));
    BASE_TRY(check_start(&known, error));
    BASE_TRY(base_alloc(1, sizeof *ranks, &ranks, error));
    sifr_status status = open_group(context, &known, &ranks->group, error);
    if (status != SIFR_OK) {
        free(ranks);
        return status;
    }
    *out = ranks;
    return SIFR_OK;
}

void sifr_ranks_close(sifr_ranks *ranks) {
    BASE_ENTER_VOID(ranks);
    comm_close(ranks->group);
    free(ranks);
}

int sifr_ranks_rank(const sifr_ranks *ranks) {
    BASE_ENTER_OR(0, ranks);
    return (int)comm_rank(ranks->group);
}

int sifr_ranks_size(const sifr_ranks *ranks) {
    BASE_ENTER_OR(1, ranks);
    return (int)comm_size(ranks->group);
}

int sifr_ranks_host_rank(const sifr_ranks *ranks) {
    BASE_ENTER_OR(0, ranks);
    return (int)comm_local_rank(ranks->group);
}

int sifr_ranks_host_size(const sifr_ranks *ranks) {
    BASE_ENTER_OR(1, ranks);
    return (int)comm_local_size(ranks->group);
}

sifr_status api_ranks_compare(sifr_ranks *ranks, sifr_error *error) {
    if (ranks->compared) return SIFR_OK;
    BASE_TRY(train_agree_program(ranks->group, error));
    ranks->compared = true;
    return SIFR_OK;
}

sifr_status sifr_ranks_agree(sifr_ranks *ranks, sifr_status status, sifr_error *error) {
    BASE_ENTER(error, ranks);
    BASE_TRY(api_ranks_compare(ranks, error));
    return comm_agree_status(ranks->group, status, error);
}

sifr_status sifr_ranks_gather(sifr_ranks *ranks, const void *mine, int64_t bytes, void *all,
                              sifr_error *error) {
    BASE_ENTER(error, ranks);
    sifr_status given = BASE_GIVEN_FOR(error, bytes > 0, mine, all);
    BASE_TRY(api_ranks_compare(ranks, error));
    BASE_TRY(comm_agree_status(ranks->group, given, error));
    return comm_all_gather_control(ranks->group, mine, bytes, all, error);
}
