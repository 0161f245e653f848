/* What gpu_look tries: each trial runs in a process of its own, which may hang or die without
 * ending the others. A process that uses a driver never forks: a context cannot be used on both
 * sides. */
#ifndef LOOK_H
#define LOOK_H

#include "device/cuda/cuda_driver.h"

enum { LOOK_TEXT = 700, LOOK_ROWS = 8, LOOK_BLOCKS = 2 };

/* A process of a trial. Zeroed at first; what a row needs is made by the calls below, once. */
typedef struct look {
    const cuda_driver *driver; /* NULL: not started */
    cuda_gpu gpu;
    cuda_context context;
    cuda_stream streams[LOOK_BLOCKS];
    cuda_address blocks[LOOK_BLOCKS];
    void *pinned[LOOK_BLOCKS];
    double start_seconds, context_seconds; /* that cuInit and the context took */
    int other;                             /* a socket to the trial's other process */
} look;

sifr_status look_start(look *l, sifr_error *error) SIFR_MUST_CHECK;   /* the driver */
sifr_status look_gpu(look *l, sifr_error *error) SIFR_MUST_CHECK;     /* and its first GPU */
sifr_status look_context(look *l, sifr_error *error) SIFR_MUST_CHECK; /* and its context, current */
sifr_status look_streams(look *l, sifr_error *error) SIFR_MUST_CHECK; /* and streams */

typedef struct look_row {
    const char *name;
    /* figure: LOOK_TEXT bytes for what was measured. */
    sifr_status (*run)(look *l, char *figure, sifr_error *error);
    const char *otherwise; /* what it means for sifr where it fails */
    bool optional;         /* a tool that may be missing: no failure */
} look_row;

typedef struct look_trial {
    const char *name; /* for --trial; two trials may share one */
    int seconds;      /* its limit */
    look_row rows[LOOK_ROWS];
    sifr_status (*other)(look *l, sifr_error *error); /* its other process, if it has one */
    bool stays; /* its process holds its context until all trials are over */
} look_trial;

typedef struct look_result {
    char result[LOOK_TEXT], figure[LOOK_TEXT];
    bool good;
} look_result;

size_t look_count_rows(const look_trial *trial);

/* Runs a trial for at most so many seconds; fills a result for each of its rows. Returns the
 * process that stays, for look_end, or 0. */
int look_run(const look_trial *trial, double seconds, look_result results[LOOK_ROWS]);
void look_end(int process);

/* The caller's parent or gpu_look itself may be ended by anyone: nobody stays behind. */
void look_end_with_parent(int signal, int parent);

/* The rows, by file. */
typedef sifr_status look_call(look *l, char *figure, sifr_error *error);
look_call look_row_driver, look_row_gpu, look_row_context, look_row_memory, look_row_kernels;
look_call look_row_ipc;
look_call look_row_words;
look_call look_row_pinned, look_row_to_device, look_row_from_device, look_row_both, look_row_inside,
    look_row_pageable_to, look_row_pageable_from;
look_call look_row_lt, look_row_own;
look_call look_row_smi, look_row_nvcc, look_row_sanitizer, look_row_ncu, look_row_torch;
sifr_status look_other_ipc(look *l, sifr_error *error) SIFR_MUST_CHECK;

#endif
