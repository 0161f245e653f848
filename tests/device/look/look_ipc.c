/* Memory of one process, read and written by another one. */
#include "device/look/look.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/heap.h"

enum { BYTES = 4 << 20, OWNER = 17, READER = 101 };

/* What the reader answers. */
typedef struct answer {
    bool good;
    char words[512];
} answer;

static unsigned char byte_at(size_t i, unsigned seed) {
    return (unsigned char)(seed + 31 * i + 7 * (i >> 8) + (i >> 16));
}

static sifr_status exchange_bytes(int socket, void *out, const void *in, size_t bytes,
                                  sifr_error *error) {
    ssize_t done =
        in ? send(socket, in, bytes, MSG_NOSIGNAL) : recv(socket, out, bytes, MSG_WAITALL);
    if (done == (ssize_t)bytes) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "the other process ended");
}

/* The block gets the pattern of `seed`. */
static sifr_status fill(look *l, cuda_address block, unsigned char *bytes, unsigned seed,
                        sifr_error *error) {
    for (size_t i = 0; i < BYTES; i++) bytes[i] = byte_at(i, seed);
    CUDA_TRY(l->driver, error, cuMemcpyHtoDAsync, block, bytes, BYTES, l->streams[0]);
    CUDA_TRY(l->driver, error, cuStreamSynchronize, l->streams[0]);
    return SIFR_OK;
}

static sifr_status check(look *l, cuda_address block, unsigned char *bytes, unsigned seed,
                         sifr_error *error) {
    memset(bytes, 0, BYTES);
    CUDA_TRY(l->driver, error, cuMemcpyDtoHAsync, bytes, block, BYTES, l->streams[0]);
    CUDA_TRY(l->driver, error, cuStreamSynchronize, l->streams[0]);
    for (size_t i = 0; i < BYTES; i++)
        if (bytes[i] != byte_at(i, seed))
            return base_fail(error, SIFR_FAILED, "byte %zu of the %s process is %u, not %u", i,
                             seed == OWNER ? "owner's" : "other", bytes[i], byte_at(i, seed));
    return SIFR_OK;
}

/* --- the reader --- */

static sifr_status read_and_write(look *l, const cuda_ipc_memory *handle, unsigned char *bytes,
                                  sifr_error *error) {
    cuda_address block;
    CUDA_TRY(l->driver, error, cuIpcOpenMemHandle, &block, *handle, CUDA_IPC_PEER_ACCESS);
    BASE_TRY(check(l, block, bytes, OWNER, error));
    BASE_TRY(fill(l, block, bytes, READER, error));
    CUDA_TRY(l->driver, error, cuIpcCloseMemHandle, block);
    return SIFR_OK;
}

/* Always answers, unless the owner is gone. */
sifr_status look_other_ipc(look *l, sifr_error *error) {
    answer out = {0};
    unsigned char *bytes = NULL;
    cuda_ipc_memory handle;
    sifr_error why = {0};
    sifr_status status = look_streams(l, &why);
    if (status == SIFR_OK) status = base_alloc(BYTES, 1, &bytes, &why);
    BASE_TRY(exchange_bytes(l->other, &handle, NULL, sizeof handle, error));
    if (status == SIFR_OK) status = read_and_write(l, &handle, bytes, &why);
    free(bytes);
    out.good = status == SIFR_OK;
    if (!out.good) snprintf(out.words, sizeof out.words, "%.500s", why.message);
    return exchange_bytes(l->other, NULL, &out, sizeof out, error);
}

/* --- the owner --- */

static sifr_status own_and_ask(look *l, unsigned char *bytes, sifr_error *error) {
    cuda_ipc_memory handle;
    cuda_address block;
    answer in;
    CUDA_TRY(l->driver, error, cuMemAlloc, &block, BYTES);
    BASE_TRY(fill(l, block, bytes, OWNER, error));
    CUDA_TRY(l->driver, error, cuIpcGetMemHandle, &handle, block);
    BASE_TRY(exchange_bytes(l->other, NULL, &handle, sizeof handle, error));
    BASE_TRY(exchange_bytes(l->other, &in, NULL, sizeof in, error));
    if (!in.good) return base_fail(error, SIFR_FAILED, "in the other process: %s", in.words);
    BASE_TRY(check(l, block, bytes, READER, error));
    CUDA_TRY(l->driver, error, cuMemFree, block);
    return SIFR_OK;
}

sifr_status look_row_ipc(look *l, char *figure, sifr_error *error) {
    unsigned char *bytes;
    BASE_TRY(look_streams(l, error));
    BASE_TRY(base_alloc(BYTES, 1, &bytes, error));
    sifr_status status = own_and_ask(l, bytes, error);
    free(bytes);
    snprintf(figure, LOOK_TEXT, "%d MiB read and written by another process, each byte checked",
             BYTES >> 20);
    return status;
}
