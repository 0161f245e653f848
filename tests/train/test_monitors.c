/* What DeepSpeed's monitors write: golden files by DeepSpeed's csvMonitor and TensorBoard's writer
 * (tests/golden/make_monitors.py); and what becomes of records that cannot be written. It is
 * in test_asan, in test_tsan. */
#include "support/scratch.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "train/report/event_file.h"
#include "train/report/queue.h"

/* Those of the script. */
static const double numbers[] = {0.0,
                                 1.0,
                                 0.1,
                                 1e-4,
                                 1e-5,
                                 2.5e-7,
                                 3e-3,
                                 5.737002368085086,
                                 65536.0,
                                 67108864.0,
                                 1e15,
                                 1e16,
                                 1.5e16,
                                 1e22,
                                 1.7976931348623157e308,
                                 5e-324,
                                 123456.789,
                                 -0.0,
                                 -2.5,
                                 1.0 / 3,
                                 9007199254740992.0,
                                 NAN,
                                 INFINITY,
                                 -INFINITY};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static void assert_same(const void *have, size_t size, const char *golden) {
    char path[4096], *want;
    size_t wanted;
    snprintf(path, sizeof path, "%s/tests/golden/monitors/%s", getenv("SOURCE"), golden);
    assert_int_equal(base_read_file(path, 1 << 20, &want, &wanted, NULL), SIFR_OK);
    assert_int_equal(size, wanted);
    assert_memory_equal(have, want, size);
    free(want);
}

static train_record step_record(int64_t step, double loss) {
    train_record record = {.when = TRAIN_EACH_STEP, .step = step, .samples = 8 * step};
    train_record_put(&record, TRAIN_LOSS, loss);
    return record;
}

/* A run in the folder `logs` of the scratch folder. */
typedef struct monitors {
    sifr_config config;
    train_report_settings settings;
    train_host host;
    char folder[4096];
} monitors;

static void begin(monitors *m, int64_t first_step) {
    *m = (monitors){.config = {.train_batch_size = 8}, .settings = {.first_step = first_step}};
    snprintf(m->folder, sizeof m->folder, "%s", scratch_path("logs"));
    m->config.csv_monitor = (config_monitor){true, m->folder, "job"};
    m->settings.config = &m->config;
    m->settings.host = &m->host;
}

static void run_csv(int64_t first_step, const double *losses, int count) {
    monitors m;
    void *sink;
    sifr_error error = {0};
    begin(&m, first_step);
    assert_int_equal(train_csv_monitor.open(&m.settings, &sink, &error), SIFR_OK);
    for (int i = 0; i < count; i++) {
        train_record record = step_record(first_step + 1 + i, losses[i]);
        assert_int_equal(train_csv_monitor.record(sink, &record, &error), SIFR_OK);
    }
    train_csv_monitor.close(sink);
}

static void read_series(char **text, size_t *size) {
    assert_int_equal(base_read_file(scratch_path("logs/job/Train_Samples_train_loss.csv"), 1 << 20,
                                    text, size, NULL),
                     SIFR_OK);
}

/* Two runs, as DeepSpeed's own class: the second, which does not resume, adds a part. */
static void csv_is_as_deepspeed_writes_it(void **state) {
    (void)state;
    char *text;
    size_t size;
    run_csv(0, numbers, NUMBERS);
    monitors m;
    void *sink;
    begin(&m, 0);
    assert_int_equal(train_csv_monitor.open(&m.settings, &sink, NULL), SIFR_OK);
    for (int i = 0; i < NUMBERS; i++) {
        train_record record = step_record(NUMBERS + 1 + i, numbers[i]);
        assert_int_equal(train_csv_monitor.record(sink, &record, NULL), SIFR_OK);
    }
    train_csv_monitor.close(sink);
    read_series(&text, &size);
    assert_same(text, size, "train_loss.csv");
    free(text);
    assert_int_equal(base_remove_tree(m.folder, NULL), SIFR_OK);
}

/* A run that resumes goes on with the last part, behind the samples of its checkpoint. */
static void csv_goes_on(void **state) {
    (void)state;
    char *text;
    size_t size;
    run_csv(0, (double[]){1, 2, 3}, 3);
    run_csv(0, (double[]){4, 5, 6}, 3);
    run_csv(1, (double[]){7, 8}, 2);
    read_series(&text, &size);
    assert_string_equal(text, "step,train_loss\r\n8,1.0\r\n16,2.0\r\n24,3.0\r\n"
                              "step,train_loss\r\n8,4.0\r\n16,7.0\r\n24,8.0\r\n");
    free(text);
    assert_int_equal(base_remove_tree(scratch_path("logs"), NULL), SIFR_OK);
}

/* A line without a number, such as an editor leaves at the end of a file, is no row: what is behind
 * it is not taken for its own. */
static void a_blank_line_is_no_row(void **state) {
    (void)state;
    char *text;
    size_t size;
    assert_int_equal(base_make_directories(scratch_path("logs/job"), NULL), SIFR_OK);
    scratch_text("logs/job/Train_Samples_train_loss.csv",
                 "step,train_loss\r\n8,1.0\r\n \n16,2.0\r\n\n");
    run_csv(1, (double[]){7}, 1);
    read_series(&text, &size);
    assert_string_equal(text, "step,train_loss\r\n8,1.0\r\n \n16,7.0\r\n");
    free(text);
    assert_int_equal(base_remove_tree(scratch_path("logs"), NULL), SIFR_OK);
}

/* As DeepSpeed: the rate and scale of the next step; of a record the rest. */
/* Neither the first series' file nor one that comes later. */
static void a_file_of_another_kind_is_left(void **state) {
    (void)state;
    static const char *const names[] = {"train_loss", "eval_loss"};
    for (int i = 0; i < 2; i++) {
        char path[4096], *text;
        size_t size;
        monitors m;
        void *sink = NULL;
        sifr_error error = {0};
        run_csv(0, (double[]){1}, 1);
        snprintf(path, sizeof path, "%s/Train_Samples_%s.csv", scratch_path("logs/job"), names[i]);
        assert_int_equal(base_write_file(path, "a,b\n1,2\n", 8, NULL), SIFR_OK);
        begin(&m, 0);
        assert_int_equal(train_csv_monitor.open(&m.settings, &sink, &error), SIFR_USAGE);
        assert_message(&error, "the file does not begin with \"step,\", as a series does; give ");
        assert_int_equal(base_read_file(path, 100, &text, &size, NULL), SIFR_OK);
        assert_string_equal(text, "a,b\n1,2\n");
        free(text);
        assert_int_equal(base_remove_tree(m.folder, NULL), SIFR_OK);
    }
}

static void events_have_deepspeeds_tags(void **state) {
    (void)state;
    train_event events[TRAIN_EVENTS];
    train_record record = step_record(1, 2.5);
    train_record_put(&record, TRAIN_LEARNING_RATE, 1e-3);
    train_record_put(&record, TRAIN_LOSS_SCALE, 8);
    train_record_put(&record, TRAIN_TOKENS_PER_SECOND, 100); /* not of each step */
    record.next_rate = 2e-3;
    record.next_scale = 16;
    assert_int_equal(train_events_of(&record, events), 3);
    assert_string_equal(events[0].tag, "Train/Samples/train_loss");
    assert_string_equal(events[1].tag, "Train/Samples/lr");
    assert_true(events[1].value == 2e-3);
    assert_string_equal(events[2].tag, "Train/Samples/loss_scale");
    assert_true(events[2].value == 16);
    record = (train_record){.when = TRAIN_EACH_EVALUATION, .step = 1};
    train_record_put(&record, TRAIN_EVAL_LOSS, 3);
    train_record_put_more(&record, "accuracy", 0.5);
    assert_int_equal(train_events_of(&record, events), 2);
    assert_string_equal(events[0].tag, "Train/Samples/eval_loss");
    assert_string_equal(events[1].tag, "Train/Samples/eval_accuracy");
}

static void events_are_as_tensorboard_writes_them(void **state) {
    (void)state;
    static const double losses[] = {5.737002368085086, 0.0, NAN, 3e-3};
    uint8_t bytes[6 * TRAIN_EVENT_BYTES];
    size_t used = train_event_version(1700000000.25, bytes);
    used += train_event_restart(1700000000.25, 801, bytes + used);
    for (int i = 0; i < 4; i++) {
        train_event event = {.tag = "Train/Samples/train_loss", .value = losses[i]};
        used += train_event_scalar(1700000000.25 + i, 400 * i, &event, bytes + used);
    }
    assert_same(bytes, used, "events.bin");
}

static void an_empty_path_is_the_current_folder(void **state) {
    (void)state;
    monitors m;
    void *sink;
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(scratch), 0);
    begin(&m, 0);
    m.config.csv_monitor = (config_monitor){true, "", "DeepSpeedJobName"};
    assert_int_equal(train_csv_monitor.open(&m.settings, &sink, NULL), SIFR_OK);
    train_csv_monitor.close(sink);
    assert_true(base_is_file("DeepSpeedJobName/Train_Samples_train_loss.csv"));
    assert_int_equal(chdir(before), 0);
}

static void a_folder_that_cannot_be_made_is_named(void **state) {
    (void)state;
    monitors m;
    train_queue *queue;
    sifr_error error = {0};
    begin(&m, 0);
    scratch_text("logs", "a file");
    assert_int_equal(train_queue_open(&m.settings, &queue, &error), SIFR_USAGE);
    assert_message(&error, "csv_monitor.output_path: ");
    assert_message(&error, "logs: cannot create the directory: File exists; give a folder that can "
                           "be written");
    m.config.tensorboard = m.config.csv_monitor;
    m.config.csv_monitor.enabled = false;
    assert_int_equal(train_queue_open(&m.settings, &queue, &error), SIFR_USAGE);
    assert_message(&error, "tensorboard.output_path: ");
    assert_null(queue);
    unlink(scratch_path("logs"));
}

typedef struct heard {
    int lines;
    char text[4][512];
} heard;

static void hear(void *user, sifr_log_level level, const char *message) {
    heard *h = user;
    assert_int_equal(level, SIFR_LOG_WARNING);
    if (h->lines < 4) snprintf(h->text[h->lines], sizeof h->text[0], "%s", message);
    h->lines++;
}

/* Files end at 64 bytes: what is written then fails. It is said once, counted at the end, and the
 * file has whole lines. */
static void a_sink_that_fails_stops_nothing(void **state) {
    (void)state;
    struct rlimit before, small;
    monitors m;
    train_queue *queue;
    heard said = {0};
    sifr_log log = {.write = hear, .user = &said};
    char *text;
    size_t size;
    begin(&m, 0);
    m.host.log = &log;
    assert_int_equal(train_queue_open(&m.settings, &queue, NULL), SIFR_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){64, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int64_t step = 1; step <= 10; step++) {
        train_record record = step_record(step, 0.125);
        train_queue_put(queue, &record);
    }
    train_queue_close(queue);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(said.lines, 2);
    assert_non_null(strstr(said.text[0], "csv_monitor: "));
    assert_non_null(strstr(said.text[0], "Train_Samples_train_loss.csv: cannot write: File too "));
    assert_non_null(strstr(said.text[0], "; the run goes on without these records there"));
    assert_non_null(strstr(said.text[1], "csv_monitor lacks 6 of 10 records: "));
    assert_non_null(strstr(said.text[1], "; metrics.jsonl has them"));
    read_series(&text, &size);
    assert_string_equal(text, "step,train_loss\r\n8,0.125\r\n16,0.125\r\n24,0.125\r\n32,0.125\r\n");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(csv_is_as_deepspeed_writes_it),
                                       cmocka_unit_test(csv_goes_on),
                                       cmocka_unit_test(a_blank_line_is_no_row),
                                       cmocka_unit_test(a_file_of_another_kind_is_left),
                                       cmocka_unit_test(events_have_deepspeeds_tags),
                                       cmocka_unit_test(events_are_as_tensorboard_writes_them),
                                       cmocka_unit_test(an_empty_path_is_the_current_folder),
                                       cmocka_unit_test(a_folder_that_cannot_be_made_is_named),
                                       cmocka_unit_test(a_sink_that_fails_stops_nothing)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
