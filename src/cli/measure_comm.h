/* What collectives take on these ranks. */
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
    double seconds;    /* of a call: of the slowest rank, the median of several runs */
} cli_comm_measure;

enum { CLI_COMM_SIZES = 10, CLI_COMM_MEASURES = CLI_COMM_SIZES * CLI_COMM_KINDS };

/* Measures each kind at 1 KB, 4 KB … 256 MB, as far as `most` bytes; all ranks call it, and the
 * operands lie where the executor's lie. *count of `out` (CLI_COMM_MEASURES) are filled. */
sifr_status cli_measure_comm(comm_group *group, int64_t most, cli_comm_measure *out, int *count,
                             sifr_error *error) SIFR_MUST_CHECK;

/* The latency of a call and the bandwidth by which its time is latency + delivered / bandwidth, of
 * gathers and reductions: from the smallest size, and from those that are large. */
void cli_fit_link(const cli_comm_measure *measures, int count, double *latency, double *bandwidth);

#endif
