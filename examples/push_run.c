/* Sends a run that "sifr": {"mlflow": true} has kept to MLflow's server:
 *     cc push_run.c $(pkg-config --cflags --libs sifr) -o push_run
 *     ./push_run out http://127.0.0.1:5000
 * Explained in docs/monitoring.md. */
#include <inttypes.h>
#include <sifr/sifr.h>
#include <stdio.h>

int main(int argc, char **argv) {
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: push_run RUN [ADDRESS]\n");
        return SIFR_USAGE;
    }
    sifr_push_options options = {.size = sizeof options, .run = argv[1], .to = argv[2]};
    sifr_pushed result = {.size = sizeof result};
    sifr_context *context = NULL;
    sifr_error error = {0};
    sifr_status status = sifr_context_create(NULL, &context, &error);
    if (status == SIFR_OK) status = sifr_push(context, &options, &result, &error);
    if (status == SIFR_OK)
        printf("%s: %" PRId64 " metrics, %" PRId64 " parameters\n", result.run_id, result.metrics,
               result.parameters);
    else
        fprintf(stderr, "push_run: %s\n", error.message);
    sifr_context_free(context);
    return (int)status;
}
