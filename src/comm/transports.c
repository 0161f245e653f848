#include "comm/transports.h"

#include "base/assert.h"

static const comm_transport *const rows[COMM_TRANSPORTS] = {
    [COMM_SELF] = &comm_transport_self, [COMM_MPI] = &comm_transport_mpi};

sifr_status comm_open(comm_transport_kind kind, const comm_options *options, comm_group **out,
                      sifr_error *error) {
    base_assert((int)kind >= 0 && kind < COMM_TRANSPORTS);
    *out = NULL;
    return rows[kind]->open(options, out, error);
}

bool comm_is_there(comm_transport_kind kind) {
    base_assert((int)kind >= 0 && kind < COMM_TRANSPORTS);
    return !rows[kind]->is_there || rows[kind]->is_there();
}

sifr_status comm_open_self(comm_group **out, sifr_error *error) {
    return comm_open(COMM_SELF, NULL, out, error);
}

sifr_status comm_open_mpi(comm_group **out, sifr_error *error) {
    return comm_open(COMM_MPI, &(comm_options){0}, out, error);
}
