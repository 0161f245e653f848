#include "train/prepare/side_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/real_path.h"
#include "checkpoint/output.h"
#include "train/report/events.h"
#include "train/run.h"

/* What a file of sifr's begins with: a mistyped path must not replace data, weights or a config. */
typedef struct side_file {
    const char *key, *path; /* NULL: not asked for */
    const char *form, *begin;
    char *folder; /* without links */
    const char *name;
} side_file;

enum { FILES = 3 };

static sifr_status locate(side_file *f, sifr_error *error) {
    char above[BASE_PATH_LENGTH];
    const char *slash = strrchr(f->path, '/');
    int length = slash == f->path ? 1 : slash ? (int)(slash - f->path) : 0;
    if (strlen(f->path) >= sizeof above)
        return base_fail(error, SIFR_USAGE, "%s: %.80s…: the path is too long", f->key, f->path);
    snprintf(above, sizeof above, "%.*s", length, f->path);
    f->name = slash ? slash + 1 : f->path;
    f->folder = base_real_path(above);
    return f->folder ? SIFR_OK : base_fail_alloc(error, sizeof above);
}

static sifr_status check_form(const side_file *f, sifr_error *error) {
    base_map map;
    size_t length = strlen(f->begin);
    if (!base_is_file(f->path)) return SIFR_OK;
    BASE_TRY(base_map_file(f->path, &map, error));
    bool ours = map.size == 0 || (map.size >= length && memcmp(map.data, f->begin, length) == 0);
    base_unmap(&map);
    if (ours) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: %s exists and is no %s of sifr's; name another file",
                     f->key, f->path, f->form);
}

static bool begins_with(const char *text, const char *begin) {
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* Names that a run writes in its output; so does the model's folder, whose files are copied. */
static bool is_of_output(const char *name, const char *model) {
    static const char *const names[] = {
        CHECKPOINT_OUTPUT_MARK, "summary.json",         "latest",          "metrics.jsonl",
        "metrics.csv",          "spool.jsonl",          "spool.sent.json", "trainer_state.json",
        "config.json",          CHECKPOINT_OUTPUT_DATA, "plan.json",       "chat_template.jinja",
        TRAIN_AVERAGE};
    static const char *const begins[] = {"checkpoint-", "model.",    "model-",
                                         "adapter_",    "tokenizer", "pytorch_model"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (begins_with(name, begins[i])) return true;
    return model && base_has_file(model, name);
}

/* Whether a folder, without links, is one that the run makes in its output, or is within one. */
static bool is_in_own_folder(const char *folder, const char *output) {
    size_t above = strlen(output);
    if (strncmp(folder, output, above) != 0 || folder[above] != '/') return false;
    const char *name = folder + above + 1;
    size_t length = strcspn(name, "/");
    return begins_with(name, "checkpoint-") ||
           (length == strlen(TRAIN_AVERAGE) && begins_with(name, TRAIN_AVERAGE)) ||
           (length == strlen(CHECKPOINT_OUTPUT_DATA) && begins_with(name, CHECKPOINT_OUTPUT_DATA));
}

static bool is_own(const side_file *f, const sifr_config *config) {
    char *output = config->output ? base_real_path(config->output) : NULL;
    bool own =
        output && ((strcmp(f->folder, output) == 0 && is_of_output(f->name, config->model)) ||
                   is_in_own_folder(f->folder, output));
    free(output);
    return own;
}

/* Of csv_monitor or tensorboard, without links; NULL: not asked for, or no memory. */
static char *find_folder(const config_monitor *m) {
    char folder[BASE_PATH_LENGTH];
    if (!m->enabled || train_events_path(m->output_path, m->job_name, folder, NULL) != SIFR_OK)
        return NULL;
    return base_real_path(folder);
}

static sifr_status check_folder(const char *key, const config_monitor *m, const char *output,
                                sifr_error *error) {
    char *folder = find_folder(m), *own = output ? base_real_path(output) : NULL;
    bool bad = folder && own && is_in_own_folder(folder, own);
    sifr_status status =
        bad ? base_fail(error, SIFR_USAGE,
                        "%s.output_path: %s is in a folder of the run's own, in --output; name "
                        "another folder",
                        key, folder)
            : SIFR_OK;
    free(folder);
    free(own);
    return status;
}

/* A series of csv_monitor, which may not be there yet. */
static bool is_series(const side_file *f, const config_monitor *csv) {
    static const char begin[] = "Train_Samples_", end[] = ".csv";
    size_t length = strlen(f->name);
    char *folder = find_folder(csv);
    bool is = folder && strcmp(folder, f->folder) == 0 && begins_with(f->name, begin) &&
              length > strlen(end) && strcmp(f->name + length - strlen(end), end) == 0;
    free(folder);
    return is;
}

static bool is_same(const side_file *a, const side_file *b) {
    return a->folder && strcmp(a->name, b->name) == 0 && strcmp(a->folder, b->folder) == 0;
}

static sifr_status check(side_file *files, int at, const sifr_config *config, sifr_error *error) {
    side_file *f = &files[at];
    if (!f->path || !*f->path) return SIFR_OK;
    BASE_TRY(locate(f, error));
    if (is_own(f, config))
        return base_fail(error, SIFR_USAGE,
                         "%s: %s is a file of the run's own, in --output; name another file",
                         f->key, f->path);
    if (is_series(f, &config->csv_monitor))
        return base_fail(error, SIFR_USAGE, "%s: %s is a file of csv_monitor; name another file",
                         f->key, f->path);
    for (int other = 0; other < at; other++)
        if (is_same(&files[other], f))
            return base_fail(error, SIFR_USAGE, "%s: %s is the file of %s; name another file",
                             f->key, f->path, files[other].key);
    return check_form(f, error);
}

/* A shell's ~ in a config would be a folder of that name, as in DeepSpeed's. */
static sifr_status check_home(const char *key, const char *path, sifr_error *error) {
    if (!path || path[0] != '~' || (path[1] && path[1] != '/')) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: %s: ~ is your home folder in a shell alone; write the folder out, or ./~ "
                     "for one of that name",
                     key, path);
}

static sifr_status check_homes(const sifr_config *config, sifr_error *error) {
    const struct {
        const char *key, *path;
    } paths[] = {
        {"output", config->output},
        {"prometheus_file", config->prometheus_file},
        {"trace", config->trace},
        {"flops_profiler.output_file", config->flops_profiler.output_file},
        {"tensorboard.output_path", config->tensorboard.output_path},
        {"csv_monitor.output_path", config->csv_monitor.output_path},
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        BASE_TRY(check_home(paths[i].key, paths[i].path, error));
    return SIFR_OK;
}

sifr_status train_check_side_files(const sifr_config *config, sifr_error *error) {
    const config_flops_profiler *flops = &config->flops_profiler;
    side_file files[FILES] = {
        {.key = "prometheus_file",
         .path = config->prometheus_file,
         .form = "text for Prometheus",
         .begin = "# HELP sifr_"},
        {.key = "flops_profiler.output_file",
         .path = flops->enabled ? flops->output_file : NULL,
         .form = "flops profile",
         .begin = "-------------------------- Flops Profiler ---"},
        {.key = "trace",
         .path = config->trace,
         .form = "trace",
         .begin = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"program\":\"sifr "},
    };
    BASE_TRY(check_homes(config, error));
    BASE_TRY(check_folder("csv_monitor", &config->csv_monitor, config->output, error));
    BASE_TRY(check_folder("tensorboard", &config->tensorboard, config->output, error));
    sifr_status status = SIFR_OK;
    for (int i = 0; status == SIFR_OK && i < FILES; i++) status = check(files, i, config, error);
    for (int i = 0; i < FILES; i++) free(files[i].folder);
    return status;
}
