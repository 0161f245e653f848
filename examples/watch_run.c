/* Prints a run as it stands, with curves in braille, whether it goes on or is over:
 *     cc watch_run.c $(pkg-config --cflags --libs sifr) -o watch_run
 *     ./watch_run out
 * Explained in docs/monitoring.md. */
#include <sifr/sifr.h>
#include <stdio.h>

static sifr_status print_screen(sifr_watch *watch, sifr_error *error) {
    const sifr_watch_options options = {
        .size = sizeof options, .columns = 100, .rows = 24, .utf8 = true};
    sifr_watch_state state = {.size = sizeof state};
    sifr_status status;
    char *text;
    do { /* a long log is read in parts */
        status = sifr_watch_look(watch, &state, error);
    } while (status == SIFR_OK && state.behind);
    if (status == SIFR_OK) status = sifr_watch_screen(watch, &options, &text, error);
    if (status != SIFR_OK) return status;
    fputs(text, stdout);
    sifr_text_free(text);
    return SIFR_OK;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: watch_run RUN\n");
        return SIFR_USAGE;
    }
    sifr_context *context = NULL;
    sifr_watch *watch = NULL;
    sifr_error error = {0};
    sifr_status status = sifr_context_create(NULL, &context, &error);
    if (status == SIFR_OK) status = sifr_watch_open(context, argv[1], &watch, &error);
    if (status == SIFR_OK) status = print_screen(watch, &error);
    if (status != SIFR_OK) fprintf(stderr, "watch_run: %s\n", error.message);
    sifr_watch_close(watch);
    sifr_context_free(context);
    return (int)status;
}
