/* The rows of all transports: each is in a folder of its own. */
#ifndef COMM_TRANSPORTS_H
#define COMM_TRANSPORTS_H

#include "comm/transport.h"

extern const comm_transport comm_transport_self; /* one rank: its slice is the whole */
extern const comm_transport comm_transport_mpi;  /* the ranks of an MPI launcher */

#endif
