#include "data/records/unpack.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

#include "base/heap.h"

/* zlib counts in unsigned int. zstd's window is what its own program takes without being asked. */
enum { PIECE = 1 << 30, WINDOW_LOG = 27, GZIP_WINDOW = 16 + 15 };

struct data_unpack {
    data_packing packing;
    const char *name;
    const uint8_t *data;
    size_t size, at;
    z_stream gzip;
    ZSTD_DStream *zstd;
    bool inside; /* a member or frame has begun and not ended */
    bool begun;  /* one was there */
};

data_packing data_packing_of(const char *path, size_t *length) {
    static const struct {
        const char *end;
        data_packing packing;
    } ends[] = {{".gz", DATA_GZIP}, {".zst", DATA_ZSTD}};
    *length = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t size = strlen(ends[i].end);
        if (*length <= size || strcasecmp(path + *length - size, ends[i].end) != 0) continue;
        *length -= size;
        return ends[i].packing;
    }
    return DATA_PLAIN;
}

sifr_status data_unpack_open(data_packing packing, const void *data, size_t size, const char *name,
                             data_unpack **out, sifr_error *error) {
    data_unpack *u;
    bool made = true;
    *out = NULL;
    BASE_TRY(base_alloc(1, sizeof *u, &u, error));
    *u = (data_unpack){.packing = packing, .name = name, .data = data, .size = size};
    if (packing == DATA_GZIP) made = inflateInit2(&u->gzip, GZIP_WINDOW) == Z_OK;
    if (packing == DATA_ZSTD) {
        u->zstd = ZSTD_createDStream();
        made = u->zstd &&
               !ZSTD_isError(ZSTD_DCtx_setParameter(u->zstd, ZSTD_d_windowLogMax, WINDOW_LOG));
    }
    if (made) {
        *out = u;
        return SIFR_OK;
    }
    data_unpack_close(u);
    return base_fail_alloc(error, 1 << 16);
}

void data_unpack_close(data_unpack *u) {
    if (!u) return;
    if (u->packing == DATA_GZIP) inflateEnd(&u->gzip);
    ZSTD_freeDStream(u->zstd);
    free(u);
}

static sifr_status damaged(const data_unpack *u, const char *what, sifr_error *error) {
    return base_fail(error, SIFR_FAILED, "%s: damaged %s data at byte %zu: %s; pack it anew",
                     u->name, u->packing == DATA_GZIP ? "gzip" : "zstd", u->at, what);
}

static sifr_status cut_short(const data_unpack *u, sifr_error *error) {
    return damaged(u, u->begun ? "the file is cut short" : "there is none", error);
}

/* gzip's own program takes zeros behind the last member, as tapes have them. */
static bool only_zeros(const data_unpack *u) {
    for (size_t i = u->at; i < u->size; i++)
        if (u->data[i]) return false;
    return true;
}

static sifr_status read_gzip(data_unpack *u, void *out, size_t size, size_t *got,
                             sifr_error *error) {
    z_stream *z = &u->gzip;
    while (*got == 0) {
        if (!u->inside && u->begun && only_zeros(u)) return SIFR_OK;
        if (!u->inside && u->begun && inflateReset(z) != Z_OK)
            return base_fail_alloc(error, 1 << 16);
        size_t in = u->size - u->at < PIECE ? u->size - u->at : PIECE;
        size_t capacity = size < PIECE ? size : PIECE;
        z->next_in = (Bytef *)(uintptr_t)(u->data + u->at), z->avail_in = (uInt)in;
        z->next_out = out, z->avail_out = (uInt)capacity;
        int code = inflate(z, Z_NO_FLUSH);
        u->at += in - z->avail_in;
        *got = capacity - z->avail_out;
        if (code == Z_MEM_ERROR) return base_fail_alloc(error, 1 << 16);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return damaged(u, z->msg ? z->msg : "it needs a dictionary", error);
        u->begun |= in > 0;
        u->inside = code != Z_STREAM_END;
        if (*got == 0 && u->inside && u->at == u->size) return cut_short(u, error);
    }
    return SIFR_OK;
}

static sifr_status read_zstd(data_unpack *u, void *out, size_t size, size_t *got,
                             sifr_error *error) {
    while (*got == 0) {
        if (!u->inside && u->begun && u->at == u->size) return SIFR_OK;
        ZSTD_inBuffer in = {u->data, u->size, u->at};
        ZSTD_outBuffer to = {out, size, 0};
        size_t code = ZSTD_decompressStream(u->zstd, &to, &in);
        bool moved = in.pos > u->at || to.pos > 0;
        u->begun |= in.pos > u->at;
        u->at = in.pos;
        if (ZSTD_isError(code)) return damaged(u, ZSTD_getErrorName(code), error);
        u->inside = code != 0;
        *got = to.pos;
        if (*got == 0 && !moved) return cut_short(u, error);
    }
    return SIFR_OK;
}

sifr_status data_unpack_read(data_unpack *u, void *out, size_t size, size_t *got,
                             sifr_error *error) {
    *got = 0;
    if (size == 0) return SIFR_OK;
    if (u->packing == DATA_GZIP) return read_gzip(u, out, size, got, error);
    if (u->packing == DATA_ZSTD) return read_zstd(u, out, size, got, error);
    *got = u->size - u->at < size ? u->size - u->at : size;
    if (*got) memcpy(out, u->data + u->at, *got);
    u->at += *got;
    return SIFR_OK;
}
