/* Files of a run's records that somebody deletes while the run writes them, that are no files, or
 * that have no room: it is said once and counted, the run goes on, and what can be kept is kept. */
#include "support/scratch.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "train/report/event_file.h"
#include "train/report/kept_lines.h"
#include "train/report/monitor.h"
#include "train/report/queue.h"
#include "train/report/spool_lines.h"

typedef struct heard {
    int lines;
    char text[8][512];
} heard;

static void hear(void *user, sifr_log_level level, const char *message) {
    heard *h = user;
    assert_int_equal(level, SIFR_LOG_WARNING);
    if (h->lines < 8) snprintf(h->text[h->lines], sizeof h->text[0], "%s", message);
    h->lines++;
}

/* A run whose monitors write into the folder `logs` of the scratch folder. */
typedef struct monitors {
    sifr_config config;
    train_report_settings settings;
    train_host host;
    sifr_log log;
    heard said;
    char folder[4096];
} monitors;

static void begin(monitors *m) {
    *m = (monitors){.config = {.train_batch_size = 8}};
    snprintf(m->folder, sizeof m->folder, "%s", scratch_path("logs"));
    m->log = (sifr_log){.write = hear, .user = &m->said};
    m->host.log = &m->log;
    m->settings = (train_report_settings){.config = &m->config, .host = &m->host, .output = "out"};
}

static train_record step_record(int64_t step, double loss) {
    train_record record = {
        .when = TRAIN_EACH_STEP, .step = step, .samples = 8 * step, .now = 2.0 * (double)step};
    train_record_put(&record, TRAIN_LOSS, loss);
    train_record_put(&record, TRAIN_GRAD_NORM, 1);
    return record;
}

static void assert_file(const char *name, const char *text) {
    char *data;
    size_t size;
    assert_int_equal(base_read_file(scratch_path(name), 1 << 20, &data, &size, NULL), SIFR_OK);
    assert_string_equal(data, text);
    free(data);
}

static void assert_lost(const train_sink *row, void *sink, int64_t step, const char *why) {
    sifr_error error = {0};
    train_record record = step_record(step, 0.5);
    assert_int_equal(row->record(sink, &record, &error), SIFR_FAILED);
    assert_message(&error, why);
}

static void assert_kept(const train_sink *row, void *sink, int64_t step) {
    sifr_error error = {0};
    train_record record = step_record(step, 0.5);
    if (row->record(sink, &record, &error) != SIFR_OK) fail_msg("%s", error.message);
}

/* One file, then all of them; the new ones have headers. */
static void a_csv_is_begun_anew(void **state) {
    (void)state;
    monitors m;
    void *sink;
    begin(&m);
    m.config.csv_monitor = (config_monitor){true, m.folder, "job"};
    assert_int_equal(train_csv_monitor.open(&m.settings, &sink, NULL), SIFR_OK);
    assert_kept(&train_csv_monitor, sink, 1);
    assert_int_equal(unlink(scratch_path("logs/job/Train_Samples_train_loss.csv")), 0);
    assert_lost(&train_csv_monitor, sink, 2,
                "Train_Samples_train_loss.csv: deleted while the run writes it");
    assert_kept(&train_csv_monitor, sink, 3);
    assert_file("logs/job/Train_Samples_train_loss.csv", "step,train_loss\r\n24,0.5\r\n");
    assert_file("logs/job/Train_Samples_grad_norm.csv",
                "step,grad_norm\r\n8,1.0\r\n16,1.0\r\n24,1.0\r\n");
    assert_int_equal(base_remove_tree(m.folder, NULL), SIFR_OK);
    assert_lost(&train_csv_monitor, sink, 4, "deleted while the run writes it");
    for (int64_t step = 5; step < 8; step++)
        assert_lost(&train_csv_monitor, sink, step, "cannot write: No such file or directory");
    assert_int_equal(base_make_directories(scratch_path("logs/job"), NULL), SIFR_OK);
    assert_kept(&train_csv_monitor, sink, 8);
    train_csv_monitor.close(sink);
    assert_file("logs/job/Train_Samples_train_loss.csv", "step,train_loss\r\n64,0.5\r\n");
}

static void find_events(char path[4096]) {
    char **names;
    size_t count;
    assert_int_equal(base_list_directory(scratch_path("logs/job"), &names, &count, NULL), SIFR_OK);
    assert_int_equal(count, 1);
    snprintf(path, 4096, "%s", scratch_path("logs/job"));
    snprintf(path + strlen(path), 4096 - strlen(path), "/%s", names[0]);
    base_free_names(names, count);
}

/* A new file of events says its version first, as each has to. */
static void events_are_begun_anew(void **state) {
    (void)state;
    monitors m;
    void *sink;
    char path[4096], *text;
    uint8_t version[TRAIN_EVENT_BYTES];
    size_t size, used = train_event_version(0, version);
    begin(&m);
    m.config.tensorboard = (config_monitor){true, m.folder, "job"};
    assert_int_equal(train_tensorboard.open(&m.settings, &sink, NULL), SIFR_OK);
    assert_kept(&train_tensorboard, sink, 1);
    find_events(path);
    assert_int_equal(unlink(path), 0);
    assert_lost(&train_tensorboard, sink, 2, "deleted while the run writes it");
    assert_kept(&train_tensorboard, sink, 3);
    find_events(path);
    assert_int_equal(base_read_file(path, 1 << 20, &text, &size, NULL), SIFR_OK);
    assert_true(size > used);
    assert_memory_equal(text, version, used);
    free(text);
    assert_int_equal(base_remove_tree(m.folder, NULL), SIFR_OK);
    assert_lost(&train_tensorboard, sink, 4, "deleted while the run writes it");
    assert_lost(&train_tensorboard, sink, 5, "cannot write: No such file or directory");
    train_tensorboard.close(sink);
}

/* Takes ownership of the record's JSON. */
static sifr_status add(const train_sink *row, void *sink, int64_t step, sifr_error *error) {
    json_t *json = json_pack("{s:I, s:f}", "step", (json_int_t)step, "loss", 0.5);
    train_record record = {.when = TRAIN_EACH_RECORD, .step = step, .json = json};
    sifr_status status = row->record(sink, &record, error);
    json_decref(json);
    return status;
}

/* metrics.jsonl has the later records, metrics.csv what that has. */
static void metrics_are_begun_anew(void **state) {
    (void)state;
    train_report_settings settings = {.output = scratch};
    void *jsonl, *csv;
    char *text;
    size_t size;
    sifr_error error = {0};
    assert_int_equal(train_jsonl.open(&settings, &jsonl, NULL), SIFR_OK);
    assert_int_equal(train_csv.open(&settings, &csv, NULL), SIFR_OK);
    for (int64_t step = 1; step <= 6; step++) {
        bool lost = step == 2, both = step == 5;
        if (lost || both) assert_int_equal(unlink(scratch_path("metrics.csv")), 0);
        if (both) assert_int_equal(unlink(scratch_path("metrics.jsonl")), 0);
        assert_int_equal(add(&train_jsonl, jsonl, step, &error), both ? SIFR_FAILED : SIFR_OK);
        if (both) assert_message(&error, "metrics.jsonl: deleted while the run writes it");
        assert_int_equal(add(&train_csv, csv, step, &error), lost || both ? SIFR_FAILED : SIFR_OK);
        if (step != 4) continue;
        assert_int_equal(base_read_file(scratch_path("metrics.csv"), 1 << 20, &text, &size, NULL),
                         SIFR_OK);
        assert_non_null(strstr(text, "\n1,,0.5,"));
        assert_non_null(strstr(text, "\n2,,0.5,"));
        assert_non_null(strstr(text, "\n4,,0.5,"));
        free(text);
    }
    train_jsonl.close(jsonl);
    train_csv.close(csv);
    assert_file("metrics.jsonl", "{\"step\":5,\"loss\":0.5}\n{\"step\":6,\"loss\":0.5}\n");
    assert_int_equal(base_read_file(scratch_path("metrics.csv"), 1 << 20, &text, &size, NULL),
                     SIFR_OK);
    assert_memory_equal(text, "step,epoch,loss,", 16);
    assert_non_null(strstr(text, "\n5,,0.5,"));
    assert_non_null(strstr(text, "\n6,,0.5,"));
    free(text);
}

/* A new spool would have no head, and so be no run's. */
static void a_spool_is_not_begun_anew(void **state) {
    (void)state;
    train_report_settings settings = {.output = scratch};
    train_spool_lines spool = {.parameters = json_object(), .began = 1};
    train_record record = step_record(1, 0.5);
    sifr_error error = {0};
    assert_int_equal(train_spool_begin(&spool, &settings, NULL), SIFR_OK);
    assert_int_equal(train_spool_record(&spool, &record, NULL), SIFR_OK);
    int64_t whole = spool.file.bytes;
    assert_int_equal(unlink(scratch_path("spool.jsonl")), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(train_spool_record(&spool, &record, &error), SIFR_FAILED);
        assert_message(&error, "spool.jsonl: deleted while the run writes it");
    }
    assert_int_equal(spool.file.bytes, whole);
    train_spool_lines_close(&spool);
    assert_false(base_is_file(scratch_path("spool.jsonl")));
}

/* A device that is full for one tag; a FIFO without a reader, which would hold up the run. */
static void no_files(void **state) {
    (void)state;
    monitors m;
    void *sink;
    sifr_error error = {0};
    begin(&m);
    m.config.csv_monitor = (config_monitor){true, m.folder, "full"};
    assert_int_equal(base_make_directories(scratch_path("logs/full"), NULL), SIFR_OK);
    assert_int_equal(symlink("/dev/full", scratch_path("logs/full/Train_Samples_grad_norm.csv")),
                     0);
    assert_int_equal(train_csv_monitor.open(&m.settings, &sink, NULL), SIFR_OK);
    for (int64_t step = 1; step < 4; step++)
        assert_lost(&train_csv_monitor, sink, step, "cannot write: No space left on device");
    train_csv_monitor.close(sink);
    assert_file("logs/full/Train_Samples_train_loss.csv",
                "step,train_loss\r\n8,0.5\r\n16,0.5\r\n24,0.5\r\n");
    assert_int_equal(mkfifo(scratch_path("logs/Train_Samples_train_loss.csv"), 0600), 0);
    m.config.csv_monitor.job_name = "";
    assert_int_equal(train_csv_monitor.open(&m.settings, &sink, &error), SIFR_USAGE);
    assert_message(&error, "csv_monitor.output_path: ");
    assert_message(&error, "cannot write: No such device or address; give a folder that can be");
}

static void assert_said(const monitors *m, const char *text) {
    for (int i = 0; i < m->said.lines && i < 8; i++)
        if (strstr(m->said.text[i], text)) return;
    fail_msg("not said: %s; but: %s", text, m->said.text[0]);
}

/* All of them at once: each says once what it cannot write, and what it lacks. */
static void a_folder_goes(void **state) {
    (void)state;
    monitors m;
    train_queue *queue;
    begin(&m);
    m.config.csv_monitor = m.config.tensorboard = (config_monitor){true, m.folder, "job"};
    char file[4096];
    snprintf(file, sizeof file, "%s", scratch_path("logs/run.prom"));
    assert_int_equal(base_make_directories(m.folder, NULL), SIFR_OK);
    m.config.prometheus_file = file;
    m.settings.total_steps = 10;
    assert_int_equal(train_queue_open(&m.settings, &queue, NULL), SIFR_OK);
    assert_true(base_is_file(file));
    assert_int_equal(base_remove_tree(m.folder, NULL), SIFR_OK);
    for (int64_t step = 1; step <= 10; step++) {
        train_record record = step_record(step, 0.5);
        train_queue_put(queue, &record);
    }
    train_queue_close(queue);
    assert_int_equal(m.said.lines, 7);
    assert_said(&m, "csv_monitor: ");
    assert_said(&m, "csv_monitor lacks 10 of 10 records: ");
    assert_said(&m, "tensorboard: ");
    assert_said(&m, "tensorboard lacks 10 of 10 records: ");
    assert_said(&m, "run.prom: cannot create: No such file or directory; the run goes on");
    assert_said(&m, "prometheus_file lacks 10 of 10 records: ");
    assert_said(&m, "; it still says that the run goes on");
    assert_false(base_is_directory(m.folder));
}

/* Steps that are faster than a disk: said when the first record is lost, and once. */
static void a_run_that_is_too_fast(void **state) {
    (void)state;
    monitors m;
    train_queue *queue;
    int64_t step = 0;
    begin(&m);
    m.config.csv_monitor = m.config.tensorboard = (config_monitor){true, m.folder, "job"};
    assert_int_equal(train_queue_open(&m.settings, &queue, NULL), SIFR_OK);
    while (step < 1000000 && !m.said.lines) {
        train_record record = step_record(++step, 0.5);
        train_queue_put(queue, &record);
    }
    for (int i = 0; i < 1000; i++) {
        train_record record = step_record(++step, 0.5);
        train_queue_put(queue, &record);
    }
    assert_int_equal(m.said.lines, 1);
    assert_said(&m, ": records come faster than they are written (csv_monitor, tensorboard), and ");
    train_queue_close(queue);
    assert_int_equal(m.said.lines, 3);
    assert_said(&m, "csv_monitor lacks ");
    assert_said(&m, ": it was slower than the steps; metrics.jsonl has them");
}

/* Files end at 512 bytes, and stay so. */
static void a_disk_that_stays_full(void **state) {
    (void)state;
    struct rlimit before, small;
    monitors m;
    train_queue *queue;
    train_monitor monitor;
    char *text, said[128];
    size_t size;
    int lines = 0;
    begin(&m);
    m.config.tensorboard = (config_monitor){true, m.folder, "full"};
    m.settings.output = scratch;
    m.settings.total_steps = 40;
    m.settings.length = 8;
    m.settings.log_every = 1;
    m.settings.epochs = data_epochs_make(DATA_LAST_JOINED, 40, 4, 4);
    assert_int_equal(train_queue_open(&m.settings, &queue, NULL), SIFR_OK);
    m.settings.queue = queue;
    assert_int_equal(train_monitor_open(&monitor, &m.settings, NULL, NULL), SIFR_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){512, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int64_t step = 1; step <= 40; step++) {
        sifr_step_result result = {.loss = 2, .gradient_norm = 1, .updated = true};
        const train_step_event event = {.step = step, .rate = 1e-3, .result = &result};
        assert_int_equal(train_monitor_step(&monitor, &event, NULL), SIFR_OK);
    }
    assert_false(train_monitor_finish(&monitor));
    train_monitor_close(&monitor);
    train_queue_unkept(queue);
    train_queue_close(queue);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(base_read_file(scratch_path("metrics.jsonl"), 1 << 20, &text, &size, NULL),
                     SIFR_OK);
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    assert_true(lines > 0 && text[size - 1] == '\n');
    free(text);
    snprintf(said, sizeof said, "lost: the last %d records: ", 40 - lines);
    assert_said(&m, said);
    assert_said(&m, "/metrics.jsonl: cannot write: File too large");
    assert_said(&m, "/metrics.csv: cannot write: File too large");
    assert_said(&m, "tensorboard lacks ");
    for (int i = 0; i < m.said.lines && i < 8; i++) assert_null(strstr(m.said.text[i], "has them"));
}

/* Where nobody can make a folder, not even the first user. */
static void a_place_that_takes_no_files(void **state) {
    (void)state;
    monitors m;
    train_queue *queue;
    sifr_error error = {0};
    begin(&m);
    m.config.tensorboard = (config_monitor){true, "/proc/logs", "job"};
    assert_int_equal(train_queue_open(&m.settings, &queue, &error), SIFR_USAGE);
    assert_message(&error, "tensorboard.output_path: ");
    m.config.tensorboard.enabled = false;
    m.config.prometheus_file = "/proc/run.prom";
    assert_int_equal(train_queue_open(&m.settings, &queue, &error), SIFR_USAGE);
    assert_message(&error, "prometheus_file: /proc/run.prom: cannot create");
    char pipe[4096];
    snprintf(pipe, sizeof pipe, "%s", scratch_path("pipe"));
    assert_int_equal(mkfifo(pipe, 0600), 0);
    m.config.prometheus_file = pipe;
    assert_int_equal(train_queue_open(&m.settings, &queue, &error), SIFR_USAGE);
    assert_message(&error, "pipe: a device or pipe, and a file would take its place");
    assert_null(queue);
}

int main(void) {
#define EACH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        EACH(a_csv_is_begun_anew),
        EACH(events_are_begun_anew),
        EACH(metrics_are_begun_anew),
        EACH(a_spool_is_not_begun_anew),
        EACH(no_files),
        EACH(a_folder_goes),
        EACH(a_run_that_is_too_fast),
        EACH(a_disk_that_stays_full),
        EACH(a_place_that_takes_no_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
