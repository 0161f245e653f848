/* DeepSpeed's tensorboard: scalars in an event file, as torch's SummaryWriter writes them. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "train/report/event_file.h"
#include "train/report/events.h"
#include "train/report/kept_lines.h"
#include "train/report/sink.h"

typedef struct tensorboard {
    train_lines file;
} tensorboard;

static bool is_asked(const sifr_config *config) {
    return config->tensorboard.enabled;
}

static sifr_status record_events(void *sink, const train_record *record, sifr_error *error) {
    tensorboard *t = sink;
    train_event events[TRAIN_EVENTS];
    uint8_t bytes[(1 + TRAIN_EVENTS) * TRAIN_EVENT_BYTES];
    size_t used = 0;
    int count = train_events_of(record, events);
    if (t->file.gone) used = train_event_version(record->time, bytes);
    for (int i = 0; i < count; i++)
        used += train_event_scalar(record->time, record->samples, &events[i], bytes + used);
    return used ? train_lines_add(&t->file, (const char *)bytes, used, error) : SIFR_OK;
}

static void close_file(void *sink) {
    tensorboard *t = sink;
    if (t) train_lines_close(&t->file);
    free(t);
}

#define PREFIX "events.out.tfevents."

/* The second that the name has: TensorBoard reads files in the order of their names, so it is
 * behind those of all files that are there. */
static sifr_status find_second(const char *folder, double now, long long *second,
                               sifr_error *error) {
    char **names;
    size_t count;
    *second = (long long)now;
    BASE_TRY(base_list_directory(folder, &names, &count, error));
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], PREFIX, sizeof PREFIX - 1) != 0) continue;
        long long other = strtoll(names[i] + sizeof PREFIX - 1, NULL, 10);
        if (other >= *second && other < 9999999999) *second = other + 1;
    }
    base_free_names(names, count);
    return SIFR_OK;
}

static sifr_status name_file(const char *folder, double now, char *out, sifr_error *error) {
    char name[256], host[HOST_NAME_MAX + 1] = "localhost";
    long long second;
    BASE_TRY(find_second(folder, now, &second, error));
    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, PREFIX "%010lld.%.128s.%ld.0", second, host, (long)getpid());
    return base_path_join(out, folder, name, error);
}

/* The first events: the version, and of a run that resumes, behind which samples TensorBoard is to
 * forget what an earlier file has. */
static sifr_status begin(tensorboard *t, const train_report_settings *s, double now,
                         sifr_error *error) {
    uint8_t bytes[2 * TRAIN_EVENT_BYTES];
    size_t used = train_event_version(now, bytes);
    if (s->first_step > 0)
        used +=
            train_event_restart(now, s->first_step * s->config->train_batch_size + 1, bytes + used);
    return train_lines_add(&t->file, (const char *)bytes, used, error);
}

static sifr_status open_file(tensorboard *t, const train_report_settings *s, sifr_error *error) {
    char folder[BASE_PATH_LENGTH], path[BASE_PATH_LENGTH];
    const config_monitor *m = &s->config->tensorboard;
    double now = base_seconds_since_1970();
    sifr_error reason = {0};
    BASE_TRY(train_events_folder("tensorboard", m->output_path, m->job_name, folder, error));
    sifr_status status = name_file(*folder ? folder : ".", now, path, &reason);
    if (status == SIFR_OK) status = train_lines_go_on(&t->file, path, 0, &reason);
    if (status == SIFR_OK) status = begin(t, s, now, &reason);
    if (status == SIFR_OK) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "tensorboard.output_path: %s; give a folder that can be written",
                     reason.message);
}

static sifr_status open_monitor(const train_report_settings *settings, void **out,
                                sifr_error *error) {
    tensorboard *t;
    BASE_TRY(base_alloc(1, sizeof *t, &t, error));
    sifr_status status = open_file(t, settings, error);
    if (status == SIFR_OK)
        *out = t;
    else
        close_file(t);
    return status;
}

const train_sink train_tensorboard = {.name = "tensorboard",
                                      .asked = is_asked,
                                      .open = open_monitor,
                                      .record = record_events,
                                      .close = close_file};
