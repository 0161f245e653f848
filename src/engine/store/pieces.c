#include "engine/store/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"

enum { PIECES = 2 };

struct engine_pieces {
    device *dev;
    char *memory; /* of both */
    int64_t bytes;
    device_mark copied[PIECES]; /* end of the last copy from or to each */
    int last;                   /* piece that was given last */
};

sifr_status engine_pieces_open(device *dev, int64_t bytes, engine_pieces **out, sifr_error *error) {
    base_assert(bytes > 0);
    engine_pieces *p;
    void *memory;
    BASE_TRY(base_alloc(1, sizeof *p, &p, error));
    p->dev = dev;
    p->bytes = bytes;
    sifr_status status = device_take_host(dev, PIECES * bytes, &memory, error);
    if (status != SIFR_OK) {
        free(p);
        return status;
    }
    p->memory = memory;
    *out = p;
    return SIFR_OK;
}

void engine_pieces_close(engine_pieces *p) {
    if (!p) return;
    for (int i = 0; i < PIECES; i++) (void)!device_finish(p->dev, p->copied[i], NULL);
    device_give(p->dev, p->memory, PIECES * p->bytes);
    free(p);
}

int64_t engine_pieces_bytes(const engine_pieces *p) {
    return p->bytes;
}

sifr_status engine_pieces_next(engine_pieces *p, void **out, sifr_error *error) {
    p->last = (p->last + 1) % PIECES;
    *out = p->memory + p->last * p->bytes;
    return device_finish(p->dev, p->copied[p->last], error);
}

/* The piece that holds the address; -1: none. */
static int piece_of(const engine_pieces *p, const void *address) {
    uintptr_t at = (uintptr_t)address - (uintptr_t)p->memory;
    return at < (uintptr_t)(PIECES * p->bytes) ? (int)(at / (uintptr_t)p->bytes) : -1;
}

static sifr_status start(engine_pieces *p, int piece, void *to, const void *from, int64_t bytes,
                         sifr_error *error) {
    base_assert(piece >= 0 && piece < PIECES && bytes <= p->bytes);
    BASE_TRY(device_start_copy(p->dev, DEVICE_COMPUTE, to, from, bytes, error));
    return device_mark_here(p->dev, DEVICE_COMPUTE, &p->copied[piece], error);
}

sifr_status engine_pieces_write(engine_pieces *p, void *to, const void *from, int64_t bytes,
                                sifr_error *error) {
    int piece = piece_of(p, from);
    void *next;
    base_assert(piece < 0 || bytes <= 0 || piece_of(p, (const char *)from + bytes - 1) == piece);
    if (piece >= 0) return start(p, piece, to, from, bytes, error);
    for (int64_t done = 0, count; done < bytes; done += count) {
        count = base_min_i64(p->bytes, bytes - done);
        BASE_TRY(engine_pieces_next(p, &next, error));
        memcpy(next, (const char *)from + done, (size_t)count);
        BASE_TRY(start(p, p->last, (char *)to + done, next, count, error));
    }
    return SIFR_OK;
}

static sifr_status start_fetch(engine_pieces *p, const void *from, int64_t bytes,
                               sifr_error *error) {
    base_assert(bytes > 0 && bytes <= p->bytes);
    void *next;
    BASE_TRY(engine_pieces_next(p, &next, error));
    return start(p, p->last, next, from, bytes, error);
}

sifr_status engine_pieces_fetch(engine_pieces *p, const void *from, int64_t bytes, void **out,
                                sifr_error *error) {
    BASE_TRY(start_fetch(p, from, bytes, error));
    *out = p->memory + p->last * p->bytes;
    return device_finish(p->dev, p->copied[p->last], error);
}

sifr_status engine_pieces_read(engine_pieces *p, const void *from, int64_t bytes,
                               engine_take_bytes take, void *user, sifr_error *error) {
    if (bytes <= 0) return SIFR_OK;
    BASE_TRY(start_fetch(p, from, base_min_i64(p->bytes, bytes), error));
    for (int64_t done = 0; done < bytes; done += p->bytes) {
        int64_t count = base_min_i64(p->bytes, bytes - done), left = bytes - done - count;
        int piece = p->last;
        if (left > 0)
            BASE_TRY(start_fetch(p, (const char *)from + done + count, base_min_i64(p->bytes, left),
                                 error));
        BASE_TRY(device_finish(p->dev, p->copied[piece], error));
        BASE_TRY(take(user, p->memory + piece * p->bytes, done, count, error));
    }
    return SIFR_OK;
}
