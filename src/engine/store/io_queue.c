/* The queues of transfers, from which threads take blocks. */
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "engine/store/async_io_private.h"

/* --- with the lock held --- */

static io_transfer *head_of(engine_io *io, int32_t line) {
    const io_line *l = &io->lines[line];
    return l->waiting ? &io->transfers[l->transfers[l->first]] : NULL;
}

static void leave_line(engine_io *io, int32_t line) {
    io_line *l = &io->lines[line];
    base_assert(l->waiting > 0);
    l->first = (l->first + 1) % io->capacity;
    l->waiting--;
}

void io_join_line(engine_io *io, int32_t line, int32_t transfer) {
    io_line *l = &io->lines[line];
    l->transfers[(l->first + l->waiting) % io->capacity] = transfer;
    l->waiting++;
}

static bool is_any_waiting(const engine_io *io) {
    return io->lines[0].waiting || io->lines[1].waiting;
}

/* Moves no more of the transfer; blocks in progress end by themselves. */
static void drop_rest(engine_io *io, io_transfer *t) {
    if (t->cut == t->bytes) return;
    if (head_of(io, t->write) == t) leave_line(io, t->write); /* only a head is cut */
    t->left -= t->bytes - t->cut;
    t->cut = t->bytes;
}

/* A disk moves more when it reads and writes at the same time than one after the other. */
static io_block take_block(engine_io *io) {
    int32_t line = io->lines[io->turn].waiting ? io->turn : !io->turn;
    io_transfer *t = head_of(io, line);
    base_assert(t && t->cut < t->bytes);
    int64_t bytes = base_min_i64(io->settings.block_bytes, t->bytes - t->cut);
    io_block block = {t, t->cut, bytes};
    if (t->cut == 0) t->times.begun = base_seconds();
    t->cut += bytes;
    if (t->cut == t->bytes) leave_line(io, line);
    io->turn = !line;
    return block;
}

/* --- by threads --- */

int32_t io_take_blocks(engine_io *io, io_block *out, int32_t most, bool sleep) {
    int32_t count = 0;
    pthread_mutex_lock(&io->lock);
    while (sleep && !is_any_waiting(io) && !io->stop) pthread_cond_wait(&io->changed, &io->lock);
    while (count < most && is_any_waiting(io)) out[count++] = take_block(io);
    pthread_mutex_unlock(&io->lock);
    return count;
}

void io_finish_block(engine_io *io, const io_block *block, bool failed, int number) {
    io_transfer *t = block->transfer;
    pthread_mutex_lock(&io->lock);
    int64_t where = t->offset + block->at;
    base_assert(block->bytes > 0 && block->bytes <= t->left);
    if (failed && (!t->failed || where < t->where)) {
        t->failed = true;
        t->number = number;
        t->where = where;
        drop_rest(io, t);
    }
    t->left -= block->bytes;
    if (t->left == 0) {
        t->times.ended = base_seconds();
        pthread_cond_broadcast(&io->changed);
    }
    pthread_mutex_unlock(&io->lock);
}
