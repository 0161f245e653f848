/* Measures how long collectives take on these ranks. */
#ifndef CLI_MEASURE_COMM_H
#define CLI_MEASURE_COMM_H

#include "comm/comm.h"

typedef enum cli_comm_kind {
    CLI_COMM_GATHER,
    CLI_COMM_REDUCE,
    CLI_COMM_SEND,
    CLI_COMM_KINDS
} cli_comm_kind;

const char *cli_comm_kind_name(cli_comm_kind kind);

typedef struct cli_comm_measure {
    cli_comm_kind kind;
    int64_t bytes;     /* of the whole buffer */
    int64_t delivered; /* to a rank */
    int64_t calls;     /* that were timed */
    double seconds;    /* of a call: slowest rank, median of several runs */
} cli_comm_measure;

enum { CLI_COMM_SIZES = 10, CLI_COMM_MEASURES = CLI_COMM_SIZES * CLI_COMM_KINDS };

/* Measures each kind at 1 KB, 4 KB … 256 MB, up to `most` bytes. All ranks call it. The operands
 * lie in the same kind of memory as the executor's. *count entries of `out`, which has
 * CLI_COMM_MEASURES, are filled. */
sifr_status cli_measure_comm(comm_group *group, int64_t most, cli_comm_measure *out, int *count,
                             sifr_error *error) SIFR_MUST_CHECK;

/* Fits time = latency + delivered bytes / bandwidth to gathers and reductions: the latency from the
 * smallest size, the bandwidth from the large ones. */
void cli_fit_link(const cli_comm_measure *measures, int count, double *latency, double *bandwidth);

#endif
