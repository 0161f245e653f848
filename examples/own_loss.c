/* A loss of one's own: the config's run, trained by the cross entropy with smoothed labels (Szegedy
 * et al. 2016) in place of the labels' own. Build it with
 *     cc own_loss.c $(pkg-config --cflags --libs sifr) -lm -o own_loss
 * and call it as ./own_loss ds.json 0.1 output, by itself or under mpirun. */
#include <math.h>
#include <sifr/sifr.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* A row's loss: the target is `share` spread over all words, and the rest at the label. */
static double row_loss(const float *logits, int64_t words, int32_t label, double share,
                       float *gradient) {
    double most = (double)logits[0], sum = 0, mean = 0;
    for (int64_t i = 1; i < words; i++) most = fmax(most, (double)logits[i]);
    for (int64_t i = 0; i < words; i++) {
        sum += exp((double)logits[i] - most);
        mean += (double)logits[i] / (double)words;
    }
    double log_sum = most + log(sum);
    for (int64_t i = 0; gradient && i < words; i++)
        gradient[i] = (float)(exp((double)logits[i] - log_sum) - share / (double)words);
    if (gradient) gradient[label] -= (float)(1 - share);
    return log_sum - share * mean - (1 - share) * (double)logits[label];
}

/* Called for some rows of logits at a time, those that have a label; one after the other, so an
 * own loss may well use threads. */
static sifr_status smoothed(void *user, sifr_loss_chunk *chunk, sifr_error *error) {
    const double *share = user;
    (void)error; /* for a status that is not SIFR_OK */
    chunk->loss = 0;
    for (int64_t r = 0; r < chunk->rows; r++)
        chunk->loss +=
            row_loss(chunk->logits + r * chunk->words, chunk->words, chunk->labels[r], *share,
                     chunk->gradient ? chunk->gradient + r * chunk->words : NULL);
    return SIFR_OK;
}

static int show_step(void *user, const sifr_train_step *step) {
    if (*(const bool *)user) printf("step %lld: loss %.4f\n", (long long)step->step, step->loss);
    return 0;
}

/* The function and what it needs outlive the run. */
static sifr_status configure(sifr_config *config, char **argv, double *share, sifr_error *error) {
    *share = atof(argv[2]);
    sifr_status status = sifr_config_load(config, argv[1], error);
    if (status == SIFR_OK) status = sifr_config_set(config, "output", argv[3], error);
    if (status == SIFR_OK) status = sifr_config_set_loss(config, smoothed, share, error);
    return status;
}

static sifr_status train(sifr_context *context, sifr_config *config, sifr_ranks *ranks, char **argv,
                         sifr_error *error) {
    double share;
    bool first = sifr_ranks_rank(ranks) == 0;
    const sifr_train_options options = {.size = sizeof options, .user = &first, .step = show_step};
    sifr_train_outcome outcome = {.size = sizeof outcome};
    /* One rank alone may fail to read its config: all agree before they go on together. */
    sifr_status status = sifr_ranks_agree(ranks, configure(config, argv, &share, error), error);
    if (status != SIFR_OK) return status;
    return sifr_train(context, config, ranks, &options, &outcome, error);
}

int main(int argc, char **argv) {
    sifr_error error = {0};
    sifr_context *context = NULL;
    sifr_config *config = NULL;
    sifr_ranks *ranks = NULL;
    if (argc != 4) {
        fprintf(stderr, "usage: own_loss CONFIG SHARE OUTPUT\n");
        return 2;
    }
    sifr_status status = sifr_context_create(NULL, &context, &error);
    if (status == SIFR_OK) status = sifr_config_create(&config, &error);
    if (status == SIFR_OK) status = sifr_ranks_open(context, NULL, &ranks, &error);
    if (status == SIFR_OK) status = train(context, config, ranks, argv, &error);
    if (status != SIFR_OK) fprintf(stderr, "own_loss: %s\n", error.message);
    sifr_config_free(config);
    sifr_ranks_close(ranks);
    sifr_context_free(context);
    return (int)status;
}
