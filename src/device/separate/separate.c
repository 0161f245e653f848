/* Devices with separate memory over the CPU: for tests of the passes and of what runs beside the
 * steps, and for plans of such devices. They know their blocks, by kind, and refuse what the host
 * or a kernel may not reach. Copies run on threads of their own. A queued one also hides its
 * memory and has threads for kernels and for exchanges: as a GPU, it has only begun what it was
 * given. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/heap.h"
#include "device/blocks.h"
#include "device/separate/hidden_block.h"
#include "device/separate/queue_set.h"

enum { MOST_HIDDEN = 64 };

typedef struct separate_device {
    device base;
    device *cpu; /* which does the work */
    device_blocks *blocks;
    queue_set *queues;
    hidden_block hidden[MOST_HIDDEN]; /* of a queued device; a free place has no `handed` */
} separate_device;

static separate_device *separate_of(const device *dev) {
    return (separate_device *)(uintptr_t)dev;
}

static void close_separate(device *dev) {
    separate_device *m = separate_of(dev);
    queue_set_close(m->queues); /* before what it works on */
    device_close(m->cpu);
    device_blocks_free(m->blocks);
    free(m);
}

static const char *isa(const device *dev) {
    return device_isa(separate_of(dev)->cpu);
}

static void describe(const device *dev, char *out, size_t size) {
    device_describe(separate_of(dev)->cpu, out, size);
}

static sifr_status prepare(device *dev, device_call *call, sifr_error *error) {
    device *cpu = separate_of(dev)->cpu;
    return cpu->backend->prepare(cpu, call, error); /* the operands are checked already */
}

/* --- memory --- */

/* NULL: not there. A free place has no address. */
static hidden_block *find_hidden(separate_device *m, const void *block) {
    for (int i = 0; i < MOST_HIDDEN; i++)
        if (m->hidden[i].handed == block) return &m->hidden[i];
    return NULL;
}

static sifr_status find_place(separate_device *m, hidden_block **out, sifr_error *error) {
    *out = find_hidden(m, NULL);
    if (*out) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "hidden memory: more than %d blocks", MOST_HIDDEN);
}

static sifr_status take_hidden(separate_device *m, int64_t bytes, void **out, void **reach,
                               sifr_error *error) {
    hidden_block *place;
    BASE_TRY(find_place(m, &place, error));
    BASE_TRY(hidden_block_take(bytes, place, error));
    *out = place->handed;
    *reach = place->real;
    return SIFR_OK;
}

/* A block that is in no list. */
static void drop(separate_device *m, void *block, int64_t bytes) {
    hidden_block *hidden = find_hidden(m, block);
    if (!hidden) {
        device_give(m->cpu, block, bytes);
        return;
    }
    hidden_block_give(hidden);
    *hidden = (hidden_block){0};
}

static sifr_status take(device *dev, device_memory kind, int64_t bytes, void **out,
                        sifr_error *error) {
    separate_device *m = separate_of(dev);
    void *block, *reach;
    if (kind == DEVICE_MEMORY && dev->backend->hidden) {
        BASE_TRY(take_hidden(m, bytes, &block, &reach, error));
    } else {
        BASE_TRY(device_take(m->cpu, bytes, &block, error));
        reach = block;
    }
    sifr_status status = device_blocks_add(m->blocks, block, bytes, kind, reach, error);
    if (status != SIFR_OK) {
        drop(m, block, bytes);
        return status;
    }
    *out = block;
    return SIFR_OK;
}

static sifr_status take_shared(device *dev, int64_t bytes, void **out, int *file,
                               sifr_error *error) {
    separate_device *m = separate_of(dev);
    void *block;
    BASE_TRY(device_take_shared(m->cpu, bytes, &block, file, error));
    sifr_status status = device_blocks_add(m->blocks, block, bytes, DEVICE_MEMORY, block, error);
    if (status != SIFR_OK) {
        device_give(m->cpu, block, bytes);
        close(*file);
        return status;
    }
    *out = block;
    return SIFR_OK;
}

static void give(device *dev, void *block, int64_t bytes) {
    device_blocks_remove(separate_of(dev)->blocks, block);
    drop(separate_of(dev), block, bytes);
}

/* Found by its process and its file there. */
typedef struct hidden_name {
    int64_t process;
    int file;
} hidden_name;

static sifr_status share(device *dev, void *block, device_share *out, sifr_error *error) {
    const hidden_block *hidden = find_hidden(separate_of(dev), block);
    if (!hidden) return base_fail(error, SIFR_FAILED, "this is no block of hidden memory");
    hidden_name name = {.process = getpid(), .file = hidden->file};
    *out = (device_share){{0}};
    memcpy(out->bytes, &name, sizeof name);
    return SIFR_OK;
}

static sifr_status open_shared(device *dev, const device_share *share, int64_t bytes, void **out,
                               sifr_error *error) {
    separate_device *m = separate_of(dev);
    hidden_block *place;
    hidden_name name;
    memcpy(&name, share->bytes, sizeof name);
    BASE_TRY(find_place(m, &place, error));
    BASE_TRY(hidden_block_open(name.process, name.file, bytes, place, error));
    *out = place->handed;
    sifr_status status =
        device_blocks_add(m->blocks, *out, bytes, DEVICE_FOREIGN, place->real, error);
    if (status != SIFR_OK) drop(m, *out, bytes);
    return status;
}

static device_counts count(const device *dev) {
    return device_blocks_count(separate_of(dev)->blocks);
}

/* --- queues --- */

static sifr_status mark(device *dev, device_queue queue, device_mark *out, sifr_error *error) {
    (void)error;
    queue_set_mark(separate_of(dev)->queues, queue, out);
    return SIFR_OK;
}

static sifr_status follow(device *dev, device_queue queue, device_mark mark, sifr_error *error) {
    return queue_set_wait(separate_of(dev)->queues, queue, mark, error);
}

static sifr_status finish(device *dev, device_mark mark, sifr_error *error) {
    return queue_set_finish(separate_of(dev)->queues, mark, error);
}

typedef struct flag_payload {
    const device_flag *flag;
    uint32_t value;
} flag_payload;

static sifr_status work_wait_flag(void *user, const void *payload, sifr_error *error) {
    const flag_payload *p = payload;
    const struct timespec nap = {.tv_nsec = 20000};
    (void)user, (void)error;
    while (!device_flag_is_at(p->flag, p->value)) nanosleep(&nap, NULL);
    return SIFR_OK;
}

static sifr_status wait_flag(device *dev, const device_flag *flag, uint32_t value,
                             sifr_error *error) {
    separate_device *m = separate_of(dev);
    flag_payload payload = {flag, value};
    if (!device_blocks_hold_host(m->blocks, (const void *)flag, sizeof *flag))
        return base_fail(error, SIFR_FAILED,
                         "a word to wait for is not in memory of device_take_host");
    return queue_set_give(m->queues, DEVICE_COMPUTE, work_wait_flag, m, &payload, sizeof payload,
                          error);
}

static void times(device *dev, device_mark mark, double *begun, double *ended) {
    queue_set_times(separate_of(dev)->queues, mark, begun, ended);
}

/* --- copies --- */

typedef struct copy_payload {
    void *to;
    const void *from;
    int64_t bytes;
} copy_payload;

static sifr_status work_copy(void *user, const void *payload, sifr_error *error) {
    const copy_payload *p = payload;
    (void)user, (void)error;
    memmove(p->to, p->from, (size_t)p->bytes);
    return SIFR_OK;
}

/* An end of a copy in a block is where the host reaches it. */
static copy_payload reach_copy(separate_device *m, void *to, const void *from, int64_t bytes) {
    void *real_to = device_blocks_reach(m->blocks, to, bytes);
    const void *real_from = device_blocks_reach(m->blocks, from, bytes);
    return (copy_payload){real_to ? real_to : to, real_from ? real_from : from, bytes};
}

/* Between the two memories alone. */
static sifr_status copy(device *dev, void *to, const void *from, int64_t bytes, sifr_error *error) {
    separate_device *m = separate_of(dev);
    bool in;
    BASE_TRY(device_blocks_note_copy(m->blocks, to, from, bytes, &in, error));
    BASE_TRY(device_finish_queue(dev, DEVICE_COMPUTE, error));
    copy_payload payload = reach_copy(m, to, from, bytes);
    return work_copy(NULL, &payload, error);
}

static sifr_status start_copy(device *dev, device_queue queue, void *to, const void *from,
                              int64_t bytes, sifr_error *error) {
    separate_device *m = separate_of(dev);
    bool inside =
        device_blocks_hold(m->blocks, to, bytes) && device_blocks_hold(m->blocks, from, bytes);
    bool in;
    if (!inside) {
        BASE_TRY(device_blocks_note_copy(m->blocks, to, from, bytes, &in, error));
        if (!device_blocks_hold_host(m->blocks, in ? from : to, bytes))
            return base_fail(error, SIFR_FAILED,
                             "copy of %lld bytes: its host memory is not of device_take_host",
                             (long long)bytes);
    }
    copy_payload payload = reach_copy(m, to, from, bytes);
    return queue_set_give(m->queues, queue, work_copy, m, &payload, sizeof payload, error);
}

/* --- kernels --- */

static int64_t extent(const device_matrix *matrix) {
    if (matrix->rows == 0 || matrix->columns == 0) return 0;
    int64_t elements = (matrix->rows - 1) * matrix->stride + matrix->columns;
    return elements * base_dtype_bytes(matrix->dtype);
}

/* Replaces an address in the device's memory by the one where its kernels reach it. */
static bool reach(const separate_device *m, void **data, int64_t bytes) {
    if (!device_blocks_hold(m->blocks, *data, bytes)) return false;
    *data = device_blocks_reach(m->blocks, *data, bytes);
    return true;
}

/* Replaces the addresses of all operands. The name of the first one outside the device's memory, as
 * in device_call; NULL: none. */
static const char *reach_operands(const separate_device *m, device_call *call, int *index) {
    const struct {
        const char *name;
        device_matrix *matrices;
        int count;
    } groups[] = {{"x", call->x, DEVICE_INPUTS},
                  {"w", call->w, DEVICE_WEIGHTS},
                  {"y", &call->y, 1},
                  {"saved", call->saved, DEVICE_SAVED},
                  {"dy", &call->dy, 1},
                  {"dx", call->dx, DEVICE_INPUTS},
                  {"dw", call->dw, DEVICE_WEIGHTS}};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        for (*index = 0; *index < groups[g].count; ++*index) {
            device_matrix *matrix = &groups[g].matrices[*index];
            if (matrix->dtype == BASE_NONE) continue;
            if (!reach(m, &matrix->data, extent(matrix))) return groups[g].name;
        }
    }
    *index = 0;
    if (call->scratch_bytes && !reach(m, &call->scratch, call->scratch_bytes)) return "scratch";
    void *step = (void *)(uintptr_t)call->step;
    if (step && !reach(m, &step, sizeof *call->step)) return "step";
    call->step = step;
    return NULL;
}

/* Transfers are not left out with an update where the host does not know of it in time: what they
 * write must be what was there. */
static sifr_status work_call(void *user, const void *payload, sifr_error *error) {
    const separate_device *m = user;
    device_call call = *(const device_call *)payload;
    if (device_is_update(call.kernel)) call.attributes.update.keeps = m->base.backend->hidden;
    return device_run(m->cpu, &call, error);
}

static sifr_status run(device *dev, const device_call *call, sifr_error *error) {
    separate_device *m = separate_of(dev);
    device_call own = *call;
    int index;
    _Static_assert(sizeof own <= QUEUE_PAYLOAD, "a call fits into a queue");
    const char *name = reach_operands(m, &own, &index);
    if (!name)
        return queue_set_give(m->queues, DEVICE_COMPUTE, work_call, m, &own, sizeof own, error);
    return base_fail(error, SIFR_FAILED, "kernel %s: operand %s[%d] is not in the device's memory",
                     device_kernel_name(call->kernel), name, index);
}

static sifr_status measure(device *dev, void *memory, int64_t bytes, device_limits *out,
                           sifr_error *error) {
    separate_device *m = separate_of(dev);
    BASE_TRY(device_finish_queue(dev, DEVICE_COMPUTE, error));
    if (memory) (void)reach(m, &memory, bytes);
    return device_measure(m->cpu, memory, bytes, out, error);
}

/* --- the numbers of a step --- */

static sifr_status outside(const char *what, sifr_error *error) {
    return base_fail(error, SIFR_FAILED, "%s: an operand is not in the device's memory", what);
}

typedef struct fold_payload {
    const float *losses;
    int64_t rows;
    double *sum;
} fold_payload;

static sifr_status work_losses(void *user, const void *payload, sifr_error *error) {
    const fold_payload *p = payload;
    return device_fold_losses(((separate_device *)user)->cpu, p->losses, p->rows, p->sum, error);
}

static sifr_status fold_losses(device *dev, const float *losses, int64_t rows, double *sum,
                               sifr_error *error) {
    separate_device *m = separate_of(dev);
    void *from = (void *)(uintptr_t)losses, *to = sum;
    if (!reach(m, &from, rows * (int64_t)sizeof *losses) || !reach(m, &to, sizeof *sum))
        return outside("sum of losses", error);
    fold_payload payload = {from, rows, to};
    return queue_set_give(m->queues, DEVICE_COMPUTE, work_losses, m, &payload, sizeof payload,
                          error);
}

static sifr_status work_decision(void *user, const void *payload, sifr_error *error) {
    return device_decide(((separate_device *)user)->cpu, payload, error);
}

static sifr_status decide(device *dev, const device_decision *decision, sifr_error *error) {
    separate_device *m = separate_of(dev);
    int64_t bytes = decision->ranks * device_part_bytes(decision->micro_batches);
    void *parts = (void *)(uintptr_t)decision->parts, *step = decision->step;
    void *outcome = decision->outcome;
    device_decision own = *decision;
    if (!reach(m, &parts, bytes) || !reach(m, &step, sizeof *own.step) ||
        !reach(m, &outcome, sizeof *own.outcome))
        return outside("the step's decision", error);
    own.parts = parts, own.step = step, own.outcome = outcome;
    return queue_set_give(m->queues, DEVICE_COMPUTE, work_decision, m, &own, sizeof own, error);
}

typedef struct sum_payload {
    device_sum sum;
    const void *slices[DEVICE_MOST_SLICES];
} sum_payload;

static sifr_status work_sum(void *user, const void *payload, sifr_error *error) {
    const sum_payload *p = payload;
    device_sum sum = p->sum;
    sum.slices = p->slices;
    return device_start_sum(((separate_device *)user)->cpu, DEVICE_EXCHANGE, &sum, error);
}

static sifr_status start_sum(device *dev, device_queue queue, const device_sum *sum,
                             sifr_error *error) {
    separate_device *m = separate_of(dev);
    sum_payload payload = {.sum = *sum};
    for (int32_t i = 0; i < sum->count; i++) {
        int64_t bytes = sum->elements * base_dtype_bytes(sum->type);
        void *slice = device_blocks_reach(m->blocks, sum->slices[i], bytes);
        if (!slice) return outside("sum of slices", error);
        payload.slices[i] = slice;
    }
    if (!reach(m, &payload.sum.out, sum->elements * base_dtype_bytes(sum->sum)))
        return outside("sum of slices", error);
    return queue_set_give(m->queues, queue, work_sum, m, &payload, sizeof payload, error);
}

/* --- opening --- */

#define SEPARATE_FUNCTIONS                                                                         \
    .close = close_separate, .isa = isa, .describe = describe, .prepare = prepare, .run = run,     \
    .measure = measure, .take = take, .take_shared = take_shared, .give = give, .copy = copy,      \
    .count = count, .start_copy = start_copy, .mark = mark, .follow = follow, .finish = finish,    \
    .times = times, .fold_losses = fold_losses, .decide = decide, .start_sum = start_sum

/* It takes the host's memory, which sets its own limit. */
static int64_t capacity(const device *dev) {
    (void)dev;
    return INT64_MAX;
}

static const device_backend separate = {SEPARATE_FUNCTIONS};
static const device_backend queued = {
    SEPARATE_FUNCTIONS,         .hidden = true,       .capacity = capacity,  .share = share,
    .open_shared = open_shared, .close_shared = give, .wait_flag = wait_flag};

static sifr_status open_with(const device_backend *backend, const queue_options *options,
                             int threads, const char *isa_name, device **out, sifr_error *error) {
    separate_device *m;
    BASE_TRY(base_alloc(1, sizeof *m, &m, error));
    sifr_status status = device_open_cpu(threads, isa_name, &m->cpu, error);
    if (status == SIFR_OK) status = device_blocks_create(&m->blocks, error);
    if (status == SIFR_OK) status = queue_set_open(options, &m->queues, error);
    if (status != SIFR_OK) {
        close_separate(&m->base);
        return status;
    }
    m->base = (device){.backend = backend, .team = m->cpu->team};
    *out = &m->base;
    return SIFR_OK;
}

sifr_status device_open_separate(int threads, const char *isa_name, device **out,
                                 sifr_error *error) {
    queue_options options = {.threads = {[DEVICE_IN] = true, [DEVICE_OUT] = true}};
    return open_with(&separate, &options, threads, isa_name, out, error);
}

sifr_status device_open_queued(int threads, const char *isa_name, uint32_t pause_us, uint64_t seed,
                               device **out, sifr_error *error) {
    queue_options options = {.pause_us = pause_us, .seed = seed};
    for (int i = 0; i < DEVICE_QUEUES; i++) options.threads[i] = true;
    return open_with(&queued, &options, threads, isa_name, out, error);
}
