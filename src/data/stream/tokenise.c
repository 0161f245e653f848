/* The calling thread writes. The other threads each take the next piece of text, in order, and
 * encode it. A ring of slots limits how far they run ahead.
 */
#include "data/stream/tokenise.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/system.h"
#include "base/text.h"
#include "base/thread.h"
#include "data/stream/token_store.h"

enum { PIECE_BYTES = 1 << 19, SLOTS_A_THREAD = 4, THREAD_LIMIT = 256 };

typedef enum slot_state { SLOT_FREE, SLOT_TAKEN, SLOT_DONE } slot_state;

/* A piece of a document; after encoding, its ids. */
typedef struct tokenise_slot {
    slot_state state;
    const char *text;
    size_t size;
    bool first, last; /* of its document */
    base_map map;     /* mapping of the document; unmapped after its last piece */
    text_tokenizer_ids ids;
    uint64_t invalid;
    sifr_error error;
} tokenise_slot;

typedef struct tokenise_job {
    const data_text_source *source;
    const text_tokenizer *tokenizer;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    tokenise_slot *slots;
    size_t slot_count;
    size_t taken, written; /* pieces */
    size_t document;       /* the next to cut */
    base_map map;          /* text of the current document, if some pieces are cut already */
    size_t position;
    bool ended, stopped; /* no more text; give up */
} tokenise_job;

/* With the lock held: cuts the next piece into `slot`. False if there is none. */
static bool next_piece(tokenise_job *job, tokenise_slot *slot) {
    slot->error = (sifr_error){0};
    slot->ids.count = 0;
    slot->invalid = 0;
    if (job->document == job->source->count) return false;
    if (!job->map.data) {
        job->position = 0;
        if (data_text_source_map(job->source, job->document, &job->map, &slot->error) != SIFR_OK) {
            slot->text = NULL;
            slot->size = 0;
            slot->first = slot->last = true;
            slot->map = (base_map){0};
            job->document = job->source->count;
            return true;
        }
    }
    const char *text = (const char *)job->map.data + job->position;
    size_t left = job->map.size - job->position;
    slot->text = text;
    slot->size =
        left <= PIECE_BYTES ? left : text_tokenizer_cut(job->tokenizer, text, left, PIECE_BYTES);
    slot->map = job->map;
    slot->first = job->position == 0;
    slot->last = slot->size == left;
    job->position += slot->size;
    if (slot->last) {
        job->document++;
        job->map = (base_map){0};
    }
    return true;
}

static tokenise_slot *take_slot(tokenise_job *job) {
    tokenise_slot *slot = NULL;
    pthread_mutex_lock(&job->lock);
    while (!job->stopped && !job->ended && job->taken - job->written == job->slot_count)
        pthread_cond_wait(&job->changed, &job->lock);
    if (!job->stopped && !job->ended) {
        slot = &job->slots[job->taken % job->slot_count];
        if (next_piece(job, slot)) {
            slot->state = SLOT_TAKEN;
            job->taken++;
        } else {
            slot = NULL;
            job->ended = true;
            pthread_cond_broadcast(&job->changed);
        }
    }
    pthread_mutex_unlock(&job->lock);
    return slot;
}

static void *work(void *argument) {
    tokenise_job *job = argument;
    text_tokenizer_scratch *scratch = NULL;
    sifr_error error = {0};
    sifr_status status = text_tokenizer_scratch_new(job->tokenizer, &scratch, &error);
    for (tokenise_slot *slot; (slot = take_slot(job));) {
        if (status != SIFR_OK) {
            slot->error = error;
        } else if (slot->error.status == SIFR_OK) {
            uint64_t before = text_tokenizer_invalid(scratch);
            sifr_status done = text_tokenizer_encode(job->tokenizer, scratch, slot->text,
                                                     slot->size, false, &slot->ids, &slot->error);
            slot->invalid = text_tokenizer_invalid(scratch) - before;
            if (done != SIFR_OK) slot->error.status = done;
        }
        pthread_mutex_lock(&job->lock);
        slot->state = SLOT_DONE;
        pthread_cond_broadcast(&job->changed);
        pthread_mutex_unlock(&job->lock);
    }
    text_tokenizer_scratch_free(scratch);
    return NULL;
}

/* Waits for the next piece in order to be encoded; NULL after the last one. */
static tokenise_slot *wait_slot(tokenise_job *job) {
    tokenise_slot *slot = &job->slots[job->written % job->slot_count];
    pthread_mutex_lock(&job->lock);
    while (!(job->taken > job->written && slot->state == SLOT_DONE) &&
           !(job->ended && job->taken == job->written))
        pthread_cond_wait(&job->changed, &job->lock);
    if (job->taken == job->written) slot = NULL;
    pthread_mutex_unlock(&job->lock);
    return slot;
}

static void free_slot(tokenise_job *job, tokenise_slot *slot) {
    if (slot->last) base_unmap(&slot->map);
    pthread_mutex_lock(&job->lock);
    slot->state = SLOT_FREE;
    job->written++;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
}

static sifr_status write_ids(data_token_writer *writer, const int32_t *ids, size_t count,
                             data_tokenised *counts, sifr_error *error) {
    counts->tokens += (int64_t)count;
    return data_token_writer_append(writer, ids, count, error);
}

/* Appends the ids after a document; `last` is the id before them, or -1. */
static sifr_status write_end(const tokenise_job *job, data_token_writer *writer,
                             const data_tokenise_options *options, int32_t last,
                             data_tokenised *counts, sifr_error *error) {
    size_t count = 0;
    const int32_t *behind = text_tokenizer_around(job->tokenizer, true, &count);
    if (!options->special) count = 0;
    if (count) last = behind[count - 1];
    BASE_TRY(write_ids(writer, behind, count, counts, error));
    if (options->separator >= 0 && last != options->separator)
        BASE_TRY(write_ids(writer, &options->separator, 1, counts, error));
    return data_token_writer_end_document(writer, error);
}

static sifr_status write_piece(const tokenise_job *job, data_token_writer *writer,
                               const data_tokenise_options *options, const tokenise_slot *slot,
                               data_tokenised *counts, sifr_error *error) {
    size_t before = 0, count = slot->ids.count;
    const int32_t *begin = text_tokenizer_around(job->tokenizer, false, &before);
    if (slot->first && options->special)
        counts->doubled += data_tokenise_doubles(job->tokenizer, slot->ids.ids, count);
    if (slot->first && options->special) BASE_TRY(write_ids(writer, begin, before, counts, error));
    BASE_TRY(write_ids(writer, slot->ids.ids, count, counts, error));
    if (!slot->last) return SIFR_OK;
    return write_end(job, writer, options, count ? slot->ids.ids[count - 1] : -1, counts, error);
}

static sifr_status write_pieces(tokenise_job *job, data_token_writer *writer,
                                const data_tokenise_options *options, double start,
                                data_tokenised *counts, sifr_error *error) {
    const base_progress *progress = options->progress;
    double told = start;
    uint64_t invalid = 0;
    for (tokenise_slot *slot; (slot = wait_slot(job)); free_slot(job, slot)) {
        if (slot->error.status != SIFR_OK)
            return base_fail(error, slot->error.status, "%s", slot->error.message);
        BASE_TRY(write_piece(job, writer, options, slot, counts, error));
        counts->bytes += slot->size;
        invalid += slot->invalid;
        if (slot->last) {
            counts->documents++;
            counts->invalid += invalid;
            counts->invalid_documents += invalid > 0;
            counts->unfinished += slot->size > 0 && slot->text[slot->size - 1] != '\n';
            invalid = 0;
        }
        double now = base_seconds();
        if (progress && progress->tell && now - told > 0.1) {
            progress->tell(progress->user, counts->bytes, job->source->bytes, now - start);
            told = now;
        }
    }
    counts->seconds = base_seconds() - start;
    return SIFR_OK;
}

static void stop(tokenise_job *job) {
    pthread_mutex_lock(&job->lock);
    job->stopped = true;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
}

/* Frees pieces that were not written. */
static void free_job(tokenise_job *job) {
    for (; job->slots && job->written < job->taken; job->written++) {
        tokenise_slot *slot = &job->slots[job->written % job->slot_count];
        if (slot->last) base_unmap(&slot->map);
    }
    base_unmap(&job->map);
    for (size_t i = 0; job->slots && i < job->slot_count; i++)
        text_tokenizer_ids_free(&job->slots[i].ids);
    free(job->slots);
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->lock);
}

sifr_status data_tokenise(const data_text_source *source, const text_tokenizer *tokenizer,
                          const data_tokenise_options *options, const char *prefix,
                          data_tokenised *counts, sifr_error *error) {
    int threads = options->threads;
    pthread_t workers[THREAD_LIMIT];
    int started = 0;
    data_token_writer writer;
    sifr_status status;
    *counts = (data_tokenised){0};
    if (threads <= 0) {
        base_system system;
        base_system_read(&system);
        threads = system.cpus;
    }
    if (threads > THREAD_LIMIT) threads = THREAD_LIMIT;
    BASE_TRY(data_token_writer_open(&writer, prefix, text_tokenizer_vocab_size(tokenizer), error));
    tokenise_job job = {.source = source,
                        .tokenizer = tokenizer,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER,
                        .slot_count = (size_t)threads * SLOTS_A_THREAD};
    BASE_TRY_GOTO(status, base_alloc(job.slot_count, sizeof *job.slots, &job.slots, error), done);
    double start = base_seconds(); /* a short text is finished before the first wait */
    while (started < threads && base_thread_start(&workers[started], work, &job) == 0) started++;
    if (started == 0) {
        status = base_fail(error, SIFR_FAILED,
                           "tokenising: the system refused to start a thread; lower the number of "
                           "threads, or raise ulimit -u");
        goto done;
    }
    status = write_pieces(&job, &writer, options, start, counts, error);
    stop(&job);
    for (int i = 0; i < started; i++) pthread_join(workers[i], NULL);
done:
    free_job(&job);
    if (status == SIFR_OK) return data_token_writer_commit(&writer, error);
    data_token_writer_abort(&writer);
    return status;
}

/* Appends the names of the ids, each followed by a space. */
static void add_names(const text_tokenizer *tokenizer, const int32_t *ids, size_t count, char *text,
                      size_t capacity) {
    for (size_t i = 0; i < count; i++) {
        size_t size = 0, used = strlen(text);
        const char *bytes = text_tokenizer_bytes(tokenizer, ids[i], &size);
        snprintf(text + used, capacity - used, "%.*s ", (int)base_min_i64((int64_t)size, 64),
                 bytes ? bytes : "");
    }
}

void data_tokenise_say(const text_tokenizer *tokenizer, bool special, int64_t separator,
                       const sifr_log *log) {
    char around[2][256] = {"", ""};
    size_t count, all = 0;
    int32_t last = -1;
    for (int behind = 0; special && behind < 2; behind++, all += count) {
        const int32_t *ids = text_tokenizer_around(tokenizer, behind, &count);
        add_names(tokenizer, ids, count, around[behind], sizeof around[behind]);
        last = behind && count ? ids[count - 1] : -1;
    }
    if (all == 0) return;
    int32_t end = (int32_t)separator;
    if (separator >= 0 && separator != last)
        add_names(tokenizer, &end, 1, around[1], sizeof around[1]);
    size_t length = strlen(around[1]);
    base_log(log, SIFR_LOG_INFO, "data: each document is %s…%s%.*s", around[0], length ? " " : "",
             length ? (int)length - 1 : 0, around[1]);
}

bool data_tokenise_doubles(const text_tokenizer *tokenizer, const int32_t *ids, size_t count) {
    size_t before;
    const int32_t *begin = text_tokenizer_around(tokenizer, false, &before);
    return before && count && ids[0] == begin[before - 1];
}

void data_tokenise_say_doubled(const text_tokenizer *tokenizer, int64_t texts, const char *what,
                               const sifr_log *log) {
    size_t before, size;
    char counted[80];
    if (!texts) return;
    const int32_t *begin = text_tokenizer_around(tokenizer, false, &before);
    const char *token = text_tokenizer_bytes(tokenizer, begin[before - 1], &size);
    base_log(log, SIFR_LOG_WARNING,
             "data: %s begin%s with %.*s, and the tokenizer puts another one before %s; give "
             "--no-special-tokens",
             base_format_counted(texts, what, counted), texts == 1 ? "s" : "",
             (int)(token ? size : 0), token ? token : "", texts == 1 ? "it" : "them");
}
