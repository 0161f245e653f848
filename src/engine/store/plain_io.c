/* A thread that moves blocks by plain reads and writes. */
#include <errno.h>
#include <unistd.h>

#include "engine/store/async_io_private.h"

/* Repeats interrupted and short reads and writes. */
static void move_block(engine_io *io, io_block block) {
    const io_transfer *t = block.transfer;
    int64_t done = 0;
    while (done < block.bytes) {
        char *memory = t->memory + block.at + done;
        size_t bytes = (size_t)(block.bytes - done);
        off_t offset = (off_t)(t->offset + block.at + done);
        ssize_t moved = t->write ? pwrite(t->file->descriptor, memory, bytes, offset)
                                 : pread(t->file->descriptor, memory, bytes, offset);
        if (moved < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (moved <= 0) {
            io_finish_block(io, &block, true, moved < 0 ? errno : t->write ? ENOSPC : 0);
            return;
        }
        done += moved;
    }
    io_finish_block(io, &block, false, 0);
}

void *io_plain_run(void *argument) {
    io_thread *thread = argument;
    io_block block;
    while (io_take_blocks(thread->io, &block, 1, true) > 0) move_block(thread->io, block);
    return NULL;
}
