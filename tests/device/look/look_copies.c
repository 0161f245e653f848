/* Pinned memory, and rates of copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "device/look/look.h"
#include "support/cuda/fake_gpu.h"

enum { TURNS = 3 };

/* Of one copy, and of the memory that is pinned at once: small ones where a driver is played. */
static size_t piece_bytes(void) {
    return (size_t)(fake_gpu_is_real() ? 256 : 1) << 20;
}

static size_t large_bytes(void) {
    return (size_t)(fake_gpu_is_real() ? 1024 : 8) << 20;
}

sifr_status look_row_pinned(look *l, char *figure, sifr_error *error) {
    void *block;
    BASE_TRY(look_context(l, error));
    double begun = base_seconds();
    CUDA_TRY(l->driver, error, cuMemHostAlloc, &block, large_bytes(), CUDA_HOST_PORTABLE);
    double took = base_seconds() - begun;
    CUDA_TRY(l->driver, error, cuMemFreeHost, block);
    snprintf(figure, LOOK_TEXT, "%zu MiB in %.0f ms", large_bytes() >> 20, 1e3 * took);
    return SIFR_OK;
}

static sifr_status need_blocks(look *l, sifr_error *error) {
    BASE_TRY(look_streams(l, error));
    for (int i = 0; i < LOOK_BLOCKS; i++)
        if (!l->blocks[i]) CUDA_TRY(l->driver, error, cuMemAlloc, &l->blocks[i], piece_bytes());
    return SIFR_OK;
}

static sifr_status need_pinned(look *l, sifr_error *error) {
    BASE_TRY(need_blocks(l, error));
    for (int i = 0; i < LOOK_BLOCKS; i++) {
        if (l->pinned[i]) continue;
        void *block;
        CUDA_TRY(l->driver, error, cuMemHostAlloc, &block, piece_bytes(), CUDA_HOST_PORTABLE);
        memset(block, 1 + i, piece_bytes());
        l->pinned[i] = block;
    }
    return SIFR_OK;
}

/* Where the host has its ends of copies; each direction has a stream. Both NULL: inside the device.
 */
typedef struct ways {
    const void *from; /* of the host */
    void *to;
} ways;

static sifr_status enqueue(look *l, const ways *w, sifr_error *error) {
    size_t bytes = piece_bytes();
    if (w->from)
        CUDA_TRY(l->driver, error, cuMemcpyHtoDAsync, l->blocks[0], w->from, bytes, l->streams[0]);
    if (w->to)
        CUDA_TRY(l->driver, error, cuMemcpyDtoHAsync, w->to, l->blocks[1], bytes, l->streams[1]);
    if (!w->from && !w->to)
        CUDA_TRY(l->driver, error, cuMemcpyDtoDAsync, l->blocks[1], l->blocks[0], bytes,
                 l->streams[0]);
    return SIFR_OK;
}

/* GB/s of the bytes of one direction: the best of some turns of `count` copies, after a copy that
 * warms up. */
static sifr_status rate(look *l, const ways *w, int count, double *out, sifr_error *error) {
    *out = 0;
    for (int turn = -1; turn < TURNS; turn++) {
        int copies = turn < 0 ? 1 : count;
        double begun = base_seconds();
        for (int i = 0; i < copies; i++) BASE_TRY(enqueue(l, w, error));
        for (int i = 0; i < LOOK_BLOCKS; i++)
            CUDA_TRY(l->driver, error, cuStreamSynchronize, l->streams[i]);
        double reached = 1e-9 * (double)piece_bytes() * copies / (base_seconds() - begun);
        if (turn >= 0 && reached > *out) *out = reached;
    }
    return SIFR_OK;
}

static sifr_status row(look *l, const ways *w, int count, char *figure, sifr_error *error) {
    double reached;
    BASE_TRY(rate(l, w, count, &reached, error));
    snprintf(figure, LOOK_TEXT, "%.1f GB/s in pieces of %zu MiB", reached, piece_bytes() >> 20);
    return SIFR_OK;
}

sifr_status look_row_to_device(look *l, char *figure, sifr_error *error) {
    BASE_TRY(need_pinned(l, error));
    return row(l, &(ways){.from = l->pinned[0]}, 4, figure, error);
}

sifr_status look_row_from_device(look *l, char *figure, sifr_error *error) {
    BASE_TRY(need_pinned(l, error));
    return row(l, &(ways){.to = l->pinned[1]}, 4, figure, error);
}

sifr_status look_row_both(look *l, char *figure, sifr_error *error) {
    double reached;
    BASE_TRY(need_pinned(l, error));
    BASE_TRY(rate(l, &(ways){l->pinned[0], l->pinned[1]}, 4, &reached, error));
    snprintf(figure, LOOK_TEXT, "%.1f GB/s each way, %.1f GB/s together", reached, 2 * reached);
    return SIFR_OK;
}

sifr_status look_row_inside(look *l, char *figure, sifr_error *error) {
    double reached;
    BASE_TRY(need_blocks(l, error));
    BASE_TRY(rate(l, &(ways){0}, fake_gpu_is_real() ? 50 : 4, &reached, error));
    snprintf(figure, LOOK_TEXT, "%.1f GB/s, read and written bytes counted", 2 * reached);
    return SIFR_OK;
}

/* Ordinary memory, touched before. */
static sifr_status pageable(look *l, bool to, char *figure, sifr_error *error) {
    void *block;
    BASE_TRY(need_blocks(l, error));
    BASE_TRY(base_alloc(piece_bytes(), 1, &block, error));
    memset(block, 3, piece_bytes());
    sifr_status status =
        row(l, to ? &(ways){.from = block} : &(ways){.to = block}, 2, figure, error);
    free(block);
    return status;
}

sifr_status look_row_pageable_to(look *l, char *figure, sifr_error *error) {
    return pageable(l, true, figure, error);
}

sifr_status look_row_pageable_from(look *l, char *figure, sifr_error *error) {
    return pageable(l, false, figure, error);
}
