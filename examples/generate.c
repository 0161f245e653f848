/* Opens a model folder and continues a text, which appears as it is made:
 *     cc generate.c $(pkg-config --cflags --libs sifr) -o generate
 *     ./generate models/gpt2 'In the beginning' 40
 * The calls are explained in docs/c-interface.md. */
#include <sifr/sifr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_line(void *user, sifr_log_level level, const char *line) {
    (void)user;
    if (level != SIFR_LOG_DEBUG) fprintf(stderr, "generate: %s\n", line);
}

static sifr_status write_piece(void *user, size_t text, const char *bytes, size_t size,
                               sifr_error *error) {
    (void)user, (void)text, (void)error;
    fwrite(bytes, 1, size, stdout);
    fflush(stdout);
    return SIFR_OK;
}

static sifr_status continue_text(sifr_generator *generator, const char *text, sifr_error *error) {
    sifr_prompt prompt = {.size = sizeof prompt, .text = text, .text_size = strlen(text)};
    sifr_generate_calls calls = {.size = sizeof calls, .piece = write_piece};
    sifr_status status = sifr_generator_add(generator, &prompt, error);
    if (status != SIFR_OK) return status;
    fputs(text, stdout);
    status = sifr_generator_run(generator, &calls, error);
    putchar('\n');
    return status;
}

int main(int argc, char **argv) {
    sifr_error error = {0};
    sifr_context *context = NULL;
    sifr_generator *generator = NULL;
    if (argc != 4) {
        fprintf(stderr, "usage: generate MODEL TEXT TOKENS\n");
        return 2;
    }
    int64_t tokens = atoll(argv[3]);
    sifr_context_options log = {.size = sizeof log, .log = {write_line, NULL}};
    sifr_generator_options options = {
        .size = sizeof options, .model = argv[1], .max_new_tokens = &tokens};

    sifr_status status = sifr_context_create(&log, &context, &error);
    if (status == SIFR_OK) status = sifr_generator_open(context, &options, &generator, &error);
    if (status == SIFR_OK) status = continue_text(generator, argv[2], &error);
    if (status != SIFR_OK) fprintf(stderr, "generate: %s\n", error.message);
    sifr_generator_free(generator);
    sifr_context_free(context);
    return (int)status;
}
