/* Trains from a config, as `sifr train` does, and with the same result to the bit.
 *     cc train_config.c $(pkg-config --cflags --libs sifr) -o train_config
 *     ./train_config ds.json model=gpt2 data=books/ output=out max-steps=100
 * Under mpirun its processes are the ranks of one run. Explained in docs/c-interface.md. */
#include <sifr/sifr.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t asked;

static void note_signal(int number) {
    asked = number;
}

static void log_line(void *user, sifr_log_level level, const char *line) {
    (void)user;
    if (level == SIFR_LOG_WARNING) fprintf(stderr, "train_config: warning: %s\n", line);
}

/* --- callbacks: what they return, unless it is 0, asks the run to save and to stop --- */

static int on_progress(void *user, const sifr_train_progress *progress) {
    (void)user;
    if (progress->begins) signal(SIGINT, note_signal); /* a signal is the program's business */
    return asked;
}

static int on_step(void *user, const sifr_train_step *step) {
    if (*(const bool *)user && step->step % 5 == 0)
        printf("step %lld of %lld: loss %.4f, rate %.2e\n", (long long)step->step,
               (long long)step->total_steps, step->loss, step->learning_rate);
    return 0;
}

static int on_save(void *user, const sifr_train_save *save) {
    if (*(const bool *)user) printf("%s: %s\n", save->model ? "model" : "checkpoint", save->path);
    return 0;
}

/* --- the run --- */

/* The config's file, and flags over it: "max-steps=100". */
static sifr_status configure(int argc, char **argv, sifr_config *config, sifr_error *error) {
    sifr_status status = sifr_config_load(config, argv[1], error);
    for (int i = 2; i < argc && status == SIFR_OK; i++) {
        char name[64];
        const char *value = strchr(argv[i], '=');
        int length = (int)(value ? (size_t)(value - argv[i]) : strlen(argv[i]));
        snprintf(name, sizeof name, "%.*s", length, argv[i]);
        status = sifr_config_set(config, name, value ? value + 1 : NULL, error);
    }
    return status;
}

static sifr_status train(sifr_context *context, sifr_config *config, sifr_ranks *ranks, int argc,
                         char **argv, sifr_error *error) {
    bool first = sifr_ranks_rank(ranks) == 0;
    sifr_train_options options = {.size = sizeof options,
                                  .user = &first,
                                  .progress = on_progress,
                                  .step = on_step,
                                  .saved = on_save};
    sifr_train_outcome outcome = {.size = sizeof outcome};
    /* One rank alone may fail to read its config: all agree before they go on together. */
    sifr_status status = configure(argc, argv, config, error);
    status = sifr_ranks_agree(ranks, status, error);
    if (status == SIFR_OK) status = sifr_train(context, config, ranks, &options, &outcome, error);
    if (status == SIFR_OK && first)
        printf("%s after step %lld, loss %.4f\n", outcome.stopped ? "stopped" : "done",
               (long long)outcome.steps, outcome.loss);
    return status;
}

int main(int argc, char **argv) {
    sifr_context_options options = {.size = sizeof options, .log = {log_line, NULL}};
    sifr_error error = {0};
    sifr_context *context = NULL;
    sifr_config *config = NULL;
    sifr_ranks *ranks = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: train_config CONFIG [FLAG=VALUE]...\n");
        return SIFR_USAGE;
    }
    sifr_status status = sifr_context_create(&options, &context, &error);
    if (status == SIFR_OK) status = sifr_config_create(&config, &error);
    if (status == SIFR_OK) status = sifr_ranks_open(context, NULL, &ranks, &error);
    if (status == SIFR_OK) status = train(context, config, ranks, argc, argv, &error);
    if (status != SIFR_OK)
        fprintf(stderr, "train_config: rank %d: %s\n", ranks ? sifr_ranks_rank(ranks) : 0,
                error.message);
    sifr_ranks_close(ranks);
    sifr_config_free(config);
    sifr_context_free(context);
    return (int)status;
}
