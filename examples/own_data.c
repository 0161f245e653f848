/* A loop of one's own over the data and the model of a config: it evaluates and saves when it
 * likes, goes on from its last checkpoint, and gives the same bits as `sifr train`.
 *     cc own_data.c $(pkg-config --cflags --libs sifr) -o own_data
 *     ./own_data ds.json OUTPUT STEPS
 * trains up to STEPS of the config's max_steps; the last call writes OUTPUT/model. Under mpirun its
 * processes are the ranks of one run. Explained in docs/c-interface.md. */
#include <sifr/sifr.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHOWN = 8 };

/* What is held in memory alike by any program: the handles. */
typedef struct program {
    sifr_context *context;
    sifr_config *config;
    sifr_ranks *ranks;
    bool first; /* this is the first rank, which prints */
    sifr_loop *loop;
    sifr_data *data;
} program;

static void log_line(void *user, sifr_log_level level, const char *line) {
    (void)user;
    if (level == SIFR_LOG_WARNING) fprintf(stderr, "own_data: warning: %s\n", line);
}

static sifr_status open_all(program *p, const char *config, sifr_error *error) {
    sifr_context_options options = {.size = sizeof options, .log = {log_line, NULL}};
    sifr_status status = sifr_context_create(&options, &p->context, error);
    if (status == SIFR_OK) status = sifr_config_create(&p->config, error);
    if (status == SIFR_OK) status = sifr_ranks_open(p->context, NULL, &p->ranks, error);
    if (status != SIFR_OK) return status;
    p->first = sifr_ranks_rank(p->ranks) == 0;
    /* What one rank alone may fail in is agreed on, before all go on together. */
    status = sifr_config_load(p->config, config, error);
    status = sifr_ranks_agree(p->ranks, status, error);
    if (status == SIFR_OK)
        status = sifr_loop_open(p->context, p->config, p->ranks, &p->loop, error);
    if (status != SIFR_OK) return status;
    sifr_data_options read = {.size = sizeof read, .ranks = sifr_ranks_size(p->ranks)};
    status = sifr_data_open(p->context, p->config, &read, &p->data, error);
    return sifr_ranks_agree(p->ranks, status, error);
}

static void close_all(program *p) {
    sifr_data_close(p->data);
    sifr_loop_close(p->loop);
    sifr_ranks_close(p->ranks);
    sifr_config_free(p->config);
    sifr_context_free(p->context);
}

/* The first sequence, as the model reads it. */
static sifr_status show_data(program *p, sifr_error *error) {
    sifr_data_figures figures = {.size = sizeof figures};
    const int64_t first = 0;
    sifr_batch batch;
    if (!p->first) return SIFR_OK;
    sifr_data_get(p->data, &figures);
    printf("%lld sequences of %lld tokens\n", (long long)figures.windows,
           (long long)figures.seq_length);
    sifr_status status = sifr_data_read(p->data, &first, 1, &batch, error);
    for (int i = 0; i < SHOWN && status == SIFR_OK; i++)
        printf("%d -> %d%s", batch.tokens[i], batch.labels[i], i + 1 < SHOWN ? ", " : "\n");
    return status;
}

/* What the loop wants to know again comes back with the state. */
static sifr_status save(program *p, const char *output, double loss, sifr_error *error) {
    char state[64];
    snprintf(state, sizeof state, "{\"last_loss\": %.6f}", loss);
    sifr_checkpoint_options options = {
        .size = sizeof options, .loop = p->loop, .state = state, .keep = 1};
    return sifr_checkpoint_save(p->context, sifr_loop_engine(p->loop), output, &options, error);
}

static sifr_status resume(program *p, const char *output, sifr_error *error) {
    sifr_checkpoint_options options = {.size = sizeof options, .loop = p->loop};
    char *state = NULL;
    sifr_engine *engine = sifr_loop_engine(p->loop);
    sifr_status status = sifr_checkpoint_load(p->context, engine, output, &options, &state, error);
    if (status == SIFR_OK && state && p->first)
        printf("goes on after step %lld: %s\n", (long long)sifr_engine_steps(engine), state);
    sifr_text_free(state);
    return status;
}

static sifr_status train(program *p, const char *output, int64_t last, sifr_error *error) {
    sifr_engine *engine = sifr_loop_engine(p->loop);
    sifr_status status = resume(p, output, error);
    sifr_step_result result = {0};
    while (status == SIFR_OK && sifr_engine_steps(engine) < last) {
        sifr_batch batch;
        status = sifr_data_step(p->data, engine, sifr_engine_steps(engine), &batch, error);
        if (status == SIFR_OK) status = sifr_loop_step(p->loop, &batch, &result, error);
        if (status != SIFR_OK || !p->first) continue;
        printf("step %lld: loss %.4f, by micro batch", (long long)sifr_engine_steps(engine),
               result.loss);
        for (int i = 0; i < result.micro_batches; i++) printf(" %.2f", result.micro_losses[i]);
        printf("\n");
    }
    return status == SIFR_OK ? save(p, output, result.loss, error) : status;
}

int main(int argc, char **argv) {
    program p = {0};
    sifr_error error = {0};
    sifr_loop_figures figures = {.size = sizeof figures};
    if (argc != 4) {
        fprintf(stderr, "usage: own_data CONFIG OUTPUT STEPS\n");
        return SIFR_USAGE;
    }
    int64_t last = atoll(argv[3]);
    sifr_status status = open_all(&p, argv[1], &error);
    if (status == SIFR_OK) status = show_data(&p, &error);
    if (status == SIFR_OK) status = train(&p, argv[2], last, &error);
    if (status == SIFR_OK) {
        char model[4096];
        snprintf(model, sizeof model, "%s/model", argv[2]);
        sifr_loop_get(p.loop, &figures);
        if (last == figures.total_steps) status = sifr_loop_save_model(p.loop, model, &error);
    }
    if (status != SIFR_OK) fprintf(stderr, "own_data: %s\n", error.message);
    close_all(&p);
    return (int)status;
}
