/* A program with a decimal comma, with another rounding mode or with traps of floats gets the files
 * of one without, and finds its own settings after each call; its callbacks find its locale;
 * threads of the library have C's; the log may call the library. timeout: 120 */
#include <dirent.h>
#include <fenv.h>
#include <locale.h>
#include <sys/stat.h>

#include "base/inside.h"
#include "base/thread.h"
#include "sifr/sifr.h"
#include "support/scratch.h"

static sifr_error error;
static sifr_context *context;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

/* --- a locale with a decimal comma, made without any package --- */

/* What `localedef -i de_DE` writes for LC_NUMERIC (glibc): a magic number, six offsets, texts. */
static const unsigned char numeric[] =
    "\x14\x11\x03\x20\x06\0\0\0\x20\0\0\0\x22\0\0\0\x24\0\0\0\x28\0\0\0\x2c\0\0\0\x30\0\0\0"
    ",\0.\0\3\3\0\0,\0\0\0.\0\0\0UTF-8";

static const char *number(double value) {
    static char text[32];
    snprintf(text, sizeof text, "%g", value);
    return text;
}

static void use_comma(void) {
    setenv("LOCPATH", scratch, 1);
    if (mkdir(scratch_path("comma"), 0777) == 0)
        scratch_write("comma/LC_NUMERIC", numeric, sizeof numeric);
    if (!setlocale(LC_NUMERIC, "comma")) {
        print_message("skipped: this C library takes no locale of this form\n");
        skip();
    }
    assert_string_equal(number(1.5), "1,5");
}

static int use_c(void **state) {
    (void)state;
    fesetenv(FE_DFL_ENV);
    return setlocale(LC_NUMERIC, "C") ? 0 : -1;
}

/* --- a run, and what it writes --- */

static const char *wanted; /* how callbacks write 1.5 */
static int calls;

static int on_step(void *user, const sifr_train_step *step) {
    (void)user, (void)step;
    calls++;
    assert_string_equal(number(1.5), wanted);
    fesetround(FE_DOWNWARD); /* which a run must not go on with */
    return 0;
}

static void on_line(void *user, const char *text) {
    (void)user, (void)text;
    assert_string_equal(number(1.5), wanted);
}

static sifr_config *make_config(void) {
    static const char text[] =
        "{\"train_micro_batch_size_per_gpu\": 2, \"gradient_clipping\": 0.5, \"optimizer\": "
        "{\"type\": \"AdamW\", \"params\": {\"lr\": 1.5e-3, \"betas\": [0.85, 0.95]}}}";
    char model[512];
    sifr_config *config;
    snprintf(model, sizeof model, "%s/tests/golden/models/gpt2", getenv("SOURCE"));
    const char *const flags[][2] = {{"model", model},
                                    {"data", scratch_path("text")},
                                    {"max-steps", "3"},
                                    {"output", scratch_path("out")},
                                    {"seq-length", "16"},
                                    {"threads", "2"},
                                    {"optimizer.params.weight_decay", "0.25"},
                                    {"logging-steps", "1"}};
    OK(sifr_config_create(&config, &error));
    OK(sifr_config_parse(config, text, sizeof text - 1, "ds.json", &error));
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        OK(sifr_config_set(config, flags[i][0], flags[i][1], &error));
    return config;
}

/* In the folder `out`, so that the configs that are kept name the same one; then it is `name`. */
static void train_into(const char *name) {
    const sifr_train_options options = {.size = sizeof options, .step = on_step, .line = on_line};
    sifr_train_outcome outcome = {.size = sizeof outcome};
    sifr_config *config = make_config();
    OK(sifr_train(context, config, NULL, &options, &outcome, &error));
    assert_int_equal(outcome.steps, 3);
    sifr_config_free(config);
    assert_int_equal(rename(scratch_path("out"), scratch_fresh(name)), 0);
}

/* Of a line of metrics.csv the columns that are no times: step, epoch, loss, norm and rate. */
static void keep_figures(char *text) {
    char *to = text;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        int columns = 0;
        for (const char *c = line; *c && columns < 5; c++) columns += *c == ',', *to++ = *c;
        *to++ = '\n';
    }
    *to = '\0';
}

static void compare_files(const char *a, const char *b, bool figures) {
    char *texts[2];
    size_t sizes[2];
    OK(base_read_file(a, 1 << 24, &texts[0], &sizes[0], &error));
    OK(base_read_file(b, 1 << 24, &texts[1], &sizes[1], &error));
    for (int i = 0; figures && i < 2; i++) {
        keep_figures(texts[i]);
        sizes[i] = strlen(texts[i]);
    }
    if (sizes[0] != sizes[1] || memcmp(texts[0], texts[1], sizes[0]) != 0)
        fail_msg("%s and %s differ", a, b);
    free(texts[0]);
    free(texts[1]);
}

static void compare_folders(const char *a, const char *b) {
    static const char *const files[] = {"model.safetensors", "config.json", "sifr_config.json",
                                        "metrics.csv"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char first[512], second[512];
        snprintf(first, sizeof first, "%s/%s", a, files[i]);
        snprintf(second, sizeof second, "%s/%s", b, files[i]);
        compare_files(first, second, strcmp(files[i], "metrics.csv") == 0);
    }
}

static void with_a_comma(void **state) {
    (void)state;
    use_comma();
    wanted = "1,5";
    train_into("comma-run");
    assert_string_equal(number(1.5), "1,5");
    compare_folders(scratch_path("plain"), scratch_path("comma-run"));
}

static void with_other_floats(void **state) {
    (void)state;
    wanted = "1.5";
    fesetround(FE_UPWARD);
    feenableexcept(FE_INEXACT | FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
    train_into("floats-run");
    int rounding = fegetround(), traps = fegetexcept();
    fesetenv(FE_DFL_ENV);
    assert_int_equal(rounding, FE_UPWARD);
    assert_int_equal(traps, FE_ALL_EXCEPT);
    compare_folders(scratch_path("plain"), scratch_path("floats-run"));
}

/* --- single calls --- */

static void values(void **state) {
    (void)state;
    sifr_settings plain = sifr_settings_defaults();
    char *text;
    use_comma();
    fesetround(FE_UPWARD);
    sifr_config *config = make_config();
    OK(sifr_config_set(config, "optimizer.params.lr", "0.1", &error));
    OK(sifr_config_resolve(config, 1, &error));
    OK(sifr_config_value(config, "optimizer.params.lr", &text, &error));
    assert_string_equal(text, "0.1");
    sifr_text_free(text);
    sifr_config_free(config);
    sifr_settings here = sifr_settings_defaults();
    assert_int_equal(fegetround(), FE_UPWARD);
    assert_true(plain.optimizer.beta1 == here.optimizer.beta1);
    assert_true(plain.optimizer.beta2 == here.optimizer.beta2);
    assert_true(plain.optimizer.eps == here.optimizer.eps);
}

static void *write_number(void *out) {
    strcpy(out, number(1.5));
    return NULL;
}

static void threads(void **state) {
    (void)state;
    pthread_t thread;
    char text[32];
    use_comma();
    assert_int_equal(base_thread_start(&thread, write_number, text), 0);
    pthread_join(thread, NULL);
    assert_string_equal(text, "1.5");
}

/* --- the log --- */

typedef struct talk {
    sifr_context *context;
    char lines[2048];
    int depth;
} talk;

static void encode_latin(sifr_context *of) {
    const int32_t *ids;
    size_t count;
    char path[512];
    sifr_tokenizer *tokenizer;
    snprintf(path, sizeof path, "%s/tests/golden/models/gpt2", getenv("SOURCE"));
    OK(sifr_tokenizer_open(of, path, &tokenizer, &error));
    OK(sifr_tokenizer_encode(tokenizer, "a\xff", 2, false, &ids, &count, &error));
    sifr_tokenizer_free(tokenizer);
}

static void answer(void *user, sifr_log_level level, const char *line) {
    talk *t = user;
    (void)level;
    strcat(strcat(t->lines, line), ";");
    if (++t->depth < 3) encode_latin(t->context);
    strcat(t->lines, ".");
}

static void log_may_call(void **state) {
    (void)state;
    talk t = {0};
    const sifr_context_options options = {.size = sizeof options, .log = {answer, &t}};
    OK(sifr_context_create(&options, &t.context, &error));
    encode_latin(t.context);
    sifr_context_free(t.context);
    const char line[] = "1 invalid UTF-8 sequence read as U+FFFD;";
    char want[512];
    snprintf(want, sizeof want, "%s%s%s...", line, line, line);
    assert_string_equal(t.lines, want);
}

static int setup(void **state) {
    char text[4096];
    if (scratch_setup(state) != 0) return -1;
    for (size_t i = 0; i < sizeof text; i++) text[i] = "abc de fgh\n"[i % 11];
    scratch_write("text", text, sizeof text);
    wanted = "1.5";
    if (sifr_context_create(NULL, &context, &error) != SIFR_OK) return -1;
    train_into("plain");
    return calls == 3 ? 0 : -1;
}

static int teardown(void **state) {
    sifr_context_free(context);
    return scratch_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(with_a_comma, use_c),
                                       cmocka_unit_test_teardown(with_other_floats, use_c),
                                       cmocka_unit_test_teardown(values, use_c),
                                       cmocka_unit_test_teardown(threads, use_c),
                                       cmocka_unit_test(log_may_call)};
    alarm(100); /* a lock that is taken twice would wait for ever */
    return cmocka_run_group_tests(tests, setup, teardown);
}
