#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "checkpoint/compressed.h"
#include "checkpoint/frozen_base.h"
#include "engine/state/convert.h"

static void print_value(const json_t *value, int digits, char *out, size_t size) {
    size_t flags = JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(digits);
    char *text = value ? json_dumps(value, flags) : NULL;
    snprintf(out, size, "%s", text ? text : "nothing");
    free(text);
}

enum { VALUE_LENGTH = 120, FIELD_LENGTH = 160 };

/* 15 digits print 0.001 as it was written; 17 digits show every difference. */
static void print_both(const json_t *was, const json_t *now, char before[VALUE_LENGTH],
                       char after[VALUE_LENGTH]) {
    for (int digits = 15; digits <= 17; digits += 2) {
        print_value(was, digits, before, VALUE_LENGTH);
        print_value(now, digits, after, VALUE_LENGTH);
        if (strcmp(before, after) != 0) break;
    }
}

/* Called for each field with different values, with its path: "seed", "optimizer.params.lr". */
typedef sifr_status (*tell_difference)(void *user, const char *path, const char *was,
                                       const char *now, sifr_error *error);

/* Compares objects field by field: first the fields of *now, then those that only *was has. A field
 * that one side lacks counts there as that of *defaults, so that checkpoints from before a key go
 * on. `prefix`: "optimizer.". */
static sifr_status compare_objects(const char *prefix, const json_t *was, const json_t *now,
                                   const json_t *defaults, tell_difference tell, void *user,
                                   sifr_error *error) {
    char path[FIELD_LENGTH], before[VALUE_LENGTH], after[VALUE_LENGTH];
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)now, key, value) {
        const json_t *other = json_object_get(was, key), *missing = json_object_get(defaults, key);
        bool objects = json_is_object(other) && json_is_object(value);
        snprintf(path, sizeof path, "%s%s%s", prefix, key, objects ? "." : "");
        if (objects) {
            BASE_TRY(compare_objects(path, other, value, missing, tell, user, error));
            continue;
        }
        if (!other) other = missing;
        if (json_equal(other, value)) continue;
        print_both(other, value, before, after);
        BASE_TRY(tell(user, path, before, after, error));
    }
    json_object_foreach((json_t *)(uintptr_t)was, key, value) {
        const json_t *missing = json_object_get(defaults, key);
        if (json_object_get(now, key) || json_equal(missing, value)) continue;
        snprintf(path, sizeof path, "%s%s", prefix, key);
        print_both(value, missing, before, after);
        BASE_TRY(tell(user, path, before, after, error));
    }
    return SIFR_OK;
}

/* Of a checkpoint in `directory`. */
typedef struct refusal {
    const char *directory;
    const char *refused, *own; /* of the record */
} refusal;

static sifr_status refuse(void *user, const char *key, const char *was, const char *now,
                          sifr_error *error) {
    const refusal *of = user;
    bool own = of->own && strcmp(of->own, key) == 0;
    if (of->refused && !own)
        return base_fail(error, SIFR_USAGE,
                         "%s: saved with %s %s, but %s %s; give the facts that it was saved with, "
                         "which sifr_checkpoint_inspect shows (one of sifr_train has those of its "
                         "run)",
                         of->directory, key, was, of->refused, now);
    return base_fail(error, SIFR_USAGE,
                     "%s: made with %s %s, but this run has %s; use the same value, or start a new "
                     "run in another output folder",
                     of->directory, key, was, now);
}

typedef struct say_where {
    const sifr_log *log;
    const char *directory;
} say_where;

static sifr_status say(void *user, const char *key, const char *was, const char *now,
                       sifr_error *error) {
    const say_where *where = user;
    (void)error;
    base_log(where->log, SIFR_LOG_WARNING,
             "%s was made with %s %s, this run has %s: continuing, but results will differ from an "
             "unchanged run",
             where->directory, key, was, now);
    return SIFR_OK;
}

/* A load under way. */
typedef struct load_run {
    sifr_engine *engine;
    comm_group *group;
    const checkpoint_record *record; /* of rank 0 */
    const sifr_log *log;
    bool first; /* this is rank 0 */
} load_run;

/* A checkpoint that is being examined. */
typedef struct candidate {
    char directory[BASE_PATH_LENGTH];
    checkpoint_opened opened;
    checkpoint_range *ranges; /* by file */
    size_t count;
    engine_loss_scaler scaler;
    optim_memory memory;
    formats_safetensors *files; /* the files that this rank needs are open */
} candidate;

static void close_candidate(candidate *c) {
    for (size_t i = 0; c->files && i < c->opened.file_count; i++)
        formats_safetensors_close(&c->files[i]);
    free(c->files);
    free(c->ranges);
    checkpoint_close(&c->opened);
}

/* Rank 0 opens the manifest first. If it cannot read it, the checkpoint is damaged; if another rank
 * then cannot, that rank sees another folder. */
static sifr_status open_manifest(const load_run *run, candidate *c, bool *damaged,
                                 sifr_error *error) {
    char hash[17];
    sifr_status status = run->first ? checkpoint_open(c->directory, &c->opened, error) : SIFR_OK;
    status = comm_agree_status(run->group, status, error);
    *damaged = status == SIFR_FAILED;
    if (status != SIFR_OK) return status;
    memcpy(hash, c->opened.hash, sizeof hash);
    BASE_TRY(comm_broadcast(run->group, 0, hash, sizeof hash, error));
    if (!run->first) {
        status = checkpoint_open(c->directory, &c->opened, error);
        if (status == SIFR_OK && strcmp(hash, c->opened.hash) != 0)
            status = base_fail(error, SIFR_FAILED,
                               "%s/%s: not the same file that rank 0 reads under this name",
                               c->directory, CHECKPOINT_MANIFEST);
        if (status == SIFR_FAILED)
            base_set_error_in(error, status,
                              "the output must be on a file system that all hosts "
                              "share");
    }
    return comm_agree_status(run->group, status, error);
}

/* The rank that verifies file `index`. Neighbouring files go to the same rank, which needs most of
 * them itself. */
static int32_t verifier(size_t index, size_t files, int32_t ranks) {
    base_assert(index < files);
    return (int32_t)(index * (size_t)ranks / files);
}

/* The ranges of file `index`, which begin at *at; moves *at past them. */
static size_t ranges_of(const candidate *c, size_t index, size_t *at) {
    size_t first = *at;
    while (*at < c->count && c->ranges[*at].file == index) ++*at;
    base_assert(*at == c->count || c->ranges[*at].file > index); /* they are sorted by file */
    return *at - first;
}

/* Only of frozen weights may the type be another than the engine's. */
static sifr_status check_range_types(const load_run *run, const candidate *c, sifr_error *error) {
    const sifr_model *model = engine_model(run->engine);
    for (size_t i = 0; i < c->count; i++) {
        const checkpoint_range *range = &c->ranges[i];
        const model_weight *w = &model->weights[range->weight];
        bool same = range->dtype == engine_weight_type(run->engine, range->weight, range->part) &&
                    range->each == engine_part_each(run->engine, range->weight, range->part);
        if (w->frozen || same) continue;
        return base_fail(error, SIFR_FAILED, "%s/%s: %s of '%.80s' in another type than the rest",
                         c->directory, CHECKPOINT_MANIFEST, range->name, w->name);
    }
    return SIFR_OK;
}

/* Verifies this rank's share of the files: sizes, checksums, and tensors against the ranges. */
static sifr_status verify(const load_run *run, candidate *c, sifr_error *error) {
    size_t at = 0, files = c->opened.file_count;
    BASE_TRY(
        checkpoint_ranges(&c->opened, run->engine, c->directory, &c->ranges, &c->count, error));
    BASE_TRY(check_range_types(run, c, error));
    BASE_TRY(checkpoint_read_scaler(&c->opened, run->engine, c->directory, &c->scaler, error));
    BASE_TRY(checkpoint_read_memory(&c->opened, run->engine, c->directory, &c->memory, error));
    for (size_t i = 0; i < files; i++) {
        size_t first = at, count = ranges_of(c, i, &at);
        formats_safetensors file;
        if (verifier(i, files, comm_size(run->group)) != comm_rank(run->group)) continue;
        BASE_TRY(checkpoint_check_file(&c->opened, i, c->directory, true, error));
        if (!count) continue;
        BASE_TRY(
            checkpoint_open_file(&c->opened, c->ranges + first, count, c->directory, &file, error));
        formats_safetensors_close(&file);
    }
    return SIFR_OK;
}

/* Elements of a range that this rank holds, one behind the other. */
typedef struct wanted_piece {
    int64_t next;         /* element of the logical weight to look at next; at first 0 */
    int64_t at;           /* in the logical weight */
    int64_t place, count; /* in this rank's */
    int64_t offset;       /* in the range */
} wanted_piece;

/* The next ones: all of a whole weight, a row of a block; false: no more. */
static bool next_wanted(const sifr_engine *engine, const checkpoint_range *range,
                        wanted_piece *out) {
    const model_weight *w = &engine_model(engine)->weights[range->weight];
    int64_t columns = model_whole(w).columns[1], end = model_logical_elements(w), first, count;
    model_stretch stored, local;
    if (!engine_range(engine, range->weight, range->part, &first, &count)) return false;
    while (model_span_next(&range->span, columns, out->next, end, &stored)) {
        out->next = stored.at + stored.count;
        if (!model_local_next(w, stored.at, out->next, &local)) continue;
        out->next = local.at + local.count;
        out->place = base_max_i64(local.place, first);
        out->count = base_min_i64(local.place + local.count, first + count) - out->place;
        if (out->count <= 0) continue;
        out->at = local.at + out->place - local.place;
        out->offset = stored.place + out->at - stored.at;
        base_assert(out->place >= first && out->offset >= 0 && out->at < end);
        return true;
    }
    return false;
}

/* Opens the files that contain elements of this rank. */
static sifr_status open_files(const load_run *run, candidate *c, sifr_error *error) {
    size_t at = 0;
    BASE_TRY(base_alloc(c->opened.file_count, sizeof *c->files, &c->files, error));
    for (size_t i = 0; i < c->opened.file_count; i++) {
        size_t first = at, count = ranges_of(c, i, &at);
        bool needed = false;
        for (size_t k = first; k < at && !needed; k++)
            needed = next_wanted(run->engine, &c->ranges[k], &(wanted_piece){0});
        if (!needed) continue;
        BASE_TRY(checkpoint_check_file(&c->opened, i, c->directory, false, error));
        BASE_TRY(checkpoint_open_file(&c->opened, c->ranges + first, count, c->directory,
                                      &c->files[i], error));
    }
    return SIFR_OK;
}

/* Elements start … stop - 1 of a logical weight in a type that this engine does not keep it in: a
 * frozen weight of a run in another training type. */
static sifr_status convert_values(sifr_engine *engine, const checkpoint_range *range,
                                  const char *from, int64_t start, int64_t stop,
                                  sifr_error *error) {
    enum { PIECE = 2048 };
    float piece[PIECE];
    int64_t size = base_dtype_bytes(range->dtype);
    for (int64_t at = start; at < stop; at += PIECE) {
        int64_t count = base_min_i64(PIECE, stop - at);
        engine_to_fp32(piece, from + (at - start) * size, range->dtype, count);
        BASE_TRY(engine_put(engine, range->weight, at, count, piece, error));
    }
    return SIFR_OK;
}

static sifr_status take_range(sifr_engine *engine, const candidate *c,
                              const checkpoint_range *range, sifr_error *error) {
    int64_t size = base_dtype_bytes(range->dtype);
    bool same = range->dtype == engine_weight_type(engine, range->weight, range->part);
    const formats_tensor *tensor = NULL;
    wanted_piece p = {0};
    while (next_wanted(engine, range, &p)) {
        base_assert(p.offset % range->each == 0);
        if (!tensor) tensor = formats_safetensors_find(&c->files[range->file], range->tensor);
        base_assert(tensor); /* open_files has seen it */
        const char *from = (const char *)tensor->data + checkpoint_values(range, p.offset) * size;
        BASE_TRY(
            same ? engine_write(engine, range->weight, range->part, p.place, p.count, from, error)
                 : convert_values(engine, range, from, p.at, p.at + p.count, error));
    }
    return SIFR_OK;
}

/* Of the mapped files, only pages with this rank's elements are read, and they are released file by
 * file. Only state on disk can fail here. */
static sifr_status take_values(sifr_engine *engine, candidate *c, sifr_error *error) {
    for (size_t i = 0; i < c->count; i++) {
        const checkpoint_range *range = &c->ranges[i];
        BASE_TRY(take_range(engine, c, range, error));
        if (i + 1 == c->count || c->ranges[i + 1].file != range->file)
            formats_safetensors_close(&c->files[range->file]);
    }
    return SIFR_OK;
}

static sifr_status take(const load_run *run, candidate *c, sifr_error *error) {
    sifr_engine *engine = run->engine;
    sifr_status status = take_values(engine, c, error);
    if (status == SIFR_OK)
        status = checkpoint_load_compressed(&c->opened, engine, c->directory, run->log, error);
    BASE_TRY(comm_agree_status(run->group, status, error));
    engine_restore(engine, c->opened.step, c->opened.updates, &c->scaler, &c->memory);
    return engine_refresh(engine, error);
}

static sifr_status check_agreement(const load_run *run, candidate *c, sifr_error *error) {
    BASE_TRY(checkpoint_check_types(&c->opened, run->engine, c->directory, error));
    if (!run->first) return SIFR_OK;
    refusal of = {c->directory, run->record->refused, run->record->own};
    BASE_TRY(compare_objects("", c->opened.must_match, run->record->must_match, NULL, refuse, &of,
                             error));
    return checkpoint_base_compare(&c->opened, run->record->base, engine_model(run->engine),
                                   c->directory, error);
}

static sifr_status say_differences(const load_run *run, const candidate *c, sifr_error *error) {
    const checkpoint_record *record = run->record;
    say_where where = {run->log, c->directory};
    json_t *was = json_deep_copy(c->opened.may_differ), *now = json_deep_copy(record->may_differ);
    sifr_status status = base_fail_alloc(error, 4096);
    if (was && now && (!record->words || record->words(was, now)))
        status = compare_objects("", was, now, record->defaults, say, &where, error);
    json_decref(was);
    json_decref(now);
    return status;
}

/* *damaged, the same on all ranks: this checkpoint is not intact; an older one may be. */
static sifr_status load_one(const load_run *run, candidate *c, json_t **state, bool *damaged,
                            sifr_error *error) {
    BASE_TRY(open_manifest(run, c, damaged, error));
    BASE_TRY(comm_agree_status(run->group, check_agreement(run, c, error), error));
    sifr_status status = comm_agree_status(run->group, verify(run, c, error), error);
    *damaged = status == SIFR_FAILED;
    if (status != SIFR_OK) return status;
    status = open_files(run, c, error);
    if (status == SIFR_OK) {
        *state = json_deep_copy(c->opened.state);
        if (!*state) status = base_fail_alloc(error, 4096);
    }
    if (status == SIFR_OK && run->first) status = say_differences(run, c, error);
    BASE_TRY(comm_agree_status(run->group, status, error));
    return take(run, c, error);
}

/* The steps of the checkpoints that rank 0 sees, sent to all ranks. */
static sifr_status list_steps(const load_run *run, const char *output, int64_t **steps,
                              size_t *count, sifr_error *error) {
    int64_t found = 0;
    *steps = NULL;
    *count = 0;
    sifr_status status = run->first ? checkpoint_list(output, steps, count, error) : SIFR_OK;
    BASE_TRY(comm_agree_status(run->group, status, error));
    found = (int64_t)*count;
    BASE_TRY(comm_broadcast(run->group, 0, &found, sizeof found, error));
    *count = (size_t)found;
    if (!run->first) status = base_alloc(*count, sizeof **steps, steps, error);
    BASE_TRY(comm_agree_status(run->group, status, error));
    return found ? comm_broadcast(run->group, 0, *steps, found * (int64_t)sizeof **steps, error)
                 : SIFR_OK;
}

/* Tries to load checkpoint-<step>. */
static sifr_status try_step(const load_run *run, const char *output, int64_t step, json_t **state,
                            bool *damaged, sifr_error *error) {
    candidate c = {0};
    char name[64];
    snprintf(name, sizeof name, "checkpoint-%lld", (long long)step);
    sifr_status status = base_path_join(c.directory, output, name, error);
    BASE_TRY(comm_agree_status(run->group, status, error));
    status = load_one(run, &c, state, damaged, error);
    close_candidate(&c);
    if (status == SIFR_OK) return SIFR_OK;
    json_decref(*state);
    *state = NULL;
    return status;
}

sifr_status checkpoint_load(sifr_engine *engine, const char *output,
                            const checkpoint_record *record, json_t **state, const sifr_log *log,
                            sifr_error *error) {
    load_run run = {engine, engine_group(engine), record, log,
                    comm_rank(engine_group(engine)) == 0};
    sifr_error newest = {0}, reason;
    int64_t *steps;
    size_t count;
    *state = NULL;
    BASE_TRY(comm_agree_status(run.group, engine_settle(engine, error), error));
    sifr_status status = list_steps(&run, output, &steps, &count, error);
    for (size_t i = 0; status == SIFR_OK && i < count; i++) {
        bool damaged = false;
        reason = (sifr_error){0};
        status = try_step(&run, output, steps[i], state, &damaged, &reason);
        if (status == SIFR_OK) break;
        if (!damaged) {
            base_set_error(error, status, "%s", reason.message);
            break;
        }
        if (i == 0) newest = reason;
        if (i + 1 == count) {
            base_set_error(error, status,
                           "%s: none of its %zu checkpoints is intact (newest: %s); start a new "
                           "run in another output folder",
                           output, count, newest.message);
            break;
        }
        if (run.first)
            base_log(log, SIFR_LOG_WARNING,
                     "checkpoint-%lld is damaged (%s); trying the checkpoint before it",
                     (long long)steps[i], reason.message);
        status = SIFR_OK;
    }
    free(steps);
    return status;
}
