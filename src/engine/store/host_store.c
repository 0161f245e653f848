#include "engine/store/host_store.h"

#include <stdlib.h>

#include "base/heap.h"

/* Copies run one after the other. Pieces of this size let the thread notice a failure soon, and are
 * large enough that the cost of starting a copy does not matter. */
enum { PIECE_BYTES = 16 << 20 };

struct engine_host_store {
    engine_io_file file;
    engine_io *io;
    int64_t bytes;
};

sifr_status engine_host_store_open(device *dev, int64_t bytes, int32_t transfers,
                                   engine_host_store **out, sifr_error *error) {
    engine_host_store *s;
    void *memory;
    sifr_status status;
    engine_io_settings settings = {
        .block_bytes = PIECE_BYTES, .queue_depth = 1, .threads = 1, .plain = true};
    BASE_TRY(base_alloc(1, sizeof *s, &s, error));
    s->file = (engine_io_file){.descriptor = -1, .path = "host memory", .dev = dev};
    s->bytes = bytes;
    BASE_TRY_GOTO(status, device_take_host(dev, bytes, &memory, error), fail);
    s->file.memory = memory;
    BASE_TRY_GOTO(status, engine_io_open(&settings, transfers, &s->io, error), fail);
    *out = s;
    return SIFR_OK;
fail:
    engine_host_store_close(s);
    return status;
}

void engine_host_store_close(engine_host_store *s) {
    if (!s) return;
    engine_io_close(s->io);
    if (s->file.memory) device_give(s->file.dev, s->file.memory, s->bytes);
    free(s);
}

engine_io *engine_host_store_io(engine_host_store *s) {
    return s->io;
}

const engine_io_file *engine_host_store_file(const engine_host_store *s) {
    return &s->file;
}
