#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "checkpoint/manifest.h"

static void print_value(const json_t *value, char *out, size_t size) {
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    snprintf(out, size, "%s", text ? text : "nothing");
    free(text);
}

/* Calls `tell` for each key of either object whose values differ, sorted as they stand. */
typedef sifr_status (*tell_difference)(void *user, const char *key, const char *was,
                                       const char *now, sifr_error *error);

static sifr_status compare_objects(const json_t *was, const json_t *now, tell_difference tell,
                                   void *user, sifr_error *error) {
    char before[120], after[120];
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)now, key, value) {
        const json_t *other = json_object_get(was, key);
        if (other && json_equal(other, value)) continue;
        print_value(other, before, sizeof before);
        print_value(value, after, sizeof after);
        BASE_TRY(tell(user, key, before, after, error));
    }
    json_object_foreach((json_t *)(uintptr_t)was, key, value) {
        if (json_object_get(now, key)) continue;
        print_value(value, before, sizeof before);
        BASE_TRY(tell(user, key, before, "nothing", error));
    }
    return SIFR_OK;
}

static sifr_status refuse(void *user, const char *key, const char *was, const char *now,
                          sifr_error *error) {
    return base_fail(error, SIFR_USAGE,
                     "%s: was made with %s %s, this run has %s; give what it was made with, or "
                     "start anew in another output folder",
                     (const char *)user, key, was, now);
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
             "%s was made with %s %s, this run has %s: it goes on, to other bits than without the "
             "change",
             where->directory, key, was, now);
    return SIFR_OK;
}

/* Everything is verified before the first byte of the engine changes. */
static sifr_status take(sifr_engine *engine, const checkpoint_opened *opened,
                        const checkpoint_range *ranges, size_t count, json_t **state,
                        sifr_error *error) {
    *state = json_deep_copy(opened->state);
    if (!*state) return base_fail_alloc(error, 4096);
    for (size_t i = 0; i < count; i++) {
        memcpy(engine_state(engine, ranges[i].weight, ranges[i].part) + ranges[i].first,
               ranges[i].data, (size_t)ranges[i].count * sizeof(float));
    }
    engine->steps = opened->step;
    engine->updates = opened->updates;
    return engine_refresh(engine, error);
}

/* *damaged: this checkpoint is not whole, and an older one may be. */
static sifr_status load_one(sifr_engine *engine, const char *directory,
                            const checkpoint_record *record, json_t **state, const sifr_log *log,
                            bool *damaged, sifr_error *error) {
    checkpoint_opened opened;
    checkpoint_range *ranges = NULL;
    size_t count;
    sifr_status status = checkpoint_open(directory, &opened, error);
    *damaged = status == SIFR_FAILED;
    if (status != SIFR_OK) return status;
    say_where where = {log, directory};
    BASE_TRY_GOTO(
        status,
        compare_objects(opened.agree, record->agree, refuse, (void *)(uintptr_t)directory, error),
        done);
    status = checkpoint_ranges(&opened, engine->model, directory, &ranges, &count, error);
    *damaged = status == SIFR_FAILED;
    if (status != SIFR_OK) goto done;
    BASE_TRY_GOTO(status, compare_objects(opened.notes, record->notes, say, &where, error), done);
    status = take(engine, &opened, ranges, count, state, error);
done:
    free(ranges);
    checkpoint_close(&opened);
    return status;
}

sifr_status checkpoint_load(sifr_engine *engine, const char *output,
                            const checkpoint_record *record, json_t **state, const sifr_log *log,
                            sifr_error *error) {
    char directory[BASE_PATH_LENGTH], name[64];
    sifr_error first = {0}, reason;
    int64_t *steps;
    size_t count;
    bool damaged = false;
    *state = NULL;
    BASE_TRY(checkpoint_list(output, &steps, &count, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "checkpoint-%lld", (long long)steps[i]);
        BASE_TRY_GOTO(status, base_path_join(directory, output, name, error), done);
        reason = (sifr_error){0};
        status = load_one(engine, directory, record, state, log, &damaged, &reason);
        if (!damaged) {
            if (status != SIFR_OK) base_set_error(error, status, "%s", reason.message);
            goto done;
        }
        if (!first.message[0]) first = reason;
        if (i + 1 < count) {
            base_log(log, SIFR_LOG_WARNING,
                     "%s is damaged (%s); going back to the checkpoint before it", name,
                     reason.message);
        }
    }
    if (count) {
        status = base_fail(error, SIFR_FAILED,
                           "%s: none of its %zu checkpoints is whole (newest: %s); start anew in "
                           "another output folder",
                           output, count, first.message);
    }
done:
    free(steps);
    return status;
}
