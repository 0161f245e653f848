/* Files of scores on any bytes: no crash, one line of message, memory bounded by the file, and what
 * is accepted is whole: rows that rise to the entries, words below those of the model, numbers that
 * can be log-probabilities. Written again, it is accepted again. The first byte says whether the
 * model's words are known. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/token_scores.h"
#include "support/fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS = 400 };

static void must(int truth) {
    if (!truth) abort();
}

static void check_said(sifr_status status, const sifr_error *error) {
    must(status == SIFR_FAILED && error->message[0] && !strpbrk(error->message, "\n\r"));
}

static const char *write_input(const uint8_t *data, size_t size) {
    static char path[256];
    snprintf(path, sizeof path, "%s/scores", fuzz_folder());
    FILE *file = fopen(path, "wb");
    must(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
    return path;
}

static void check_scores(const data_token_scores *s, int64_t words) {
    must(s->rows >= 0 && s->offsets[0] == 0 && s->offsets[s->rows] == s->entries);
    for (int64_t r = 0; r < s->rows; r++) must(s->offsets[r] <= s->offsets[r + 1]);
    must(s->temperature > 0 && isfinite(s->temperature));
    must((s->top > 0) == (s->top_ids != NULL) && (s->top > 0) == (s->top_logprobs != NULL));
    for (int64_t i = 0; i < s->entries; i++) {
        must(isfinite(s->logprobs[i]));
        for (int64_t k = i * s->top; k < (i + 1) * s->top; k++) {
            must(s->top_ids[k] >= 0 && (!words || s->top_ids[k] < words));
            must(isfinite(s->top_logprobs[k]));
        }
    }
}

static void write_again(const data_token_scores *s, int64_t words) {
    char path[256];
    data_score_writer writer;
    data_token_scores again;
    snprintf(path, sizeof path, "%s/again", fuzz_folder());
    must(data_score_writer_open(path, s->rows, s->entries, s->top, s->temperature, &writer, NULL) ==
         SIFR_OK);
    memcpy(writer.offsets, s->offsets, ((size_t)s->rows + 1) * sizeof *writer.offsets);
    if (s->entries) memcpy(writer.ids, s->ids, (size_t)s->entries * sizeof *writer.ids);
    for (int64_t i = 0; i < s->entries; i++)
        must(data_score_writer_put(&writer, s->logprobs[i], s->top ? s->top_ids + i * s->top : NULL,
                                   s->top ? s->top_logprobs + i * s->top : NULL, NULL) == SIFR_OK);
    must(data_score_writer_commit(&writer, NULL) == SIFR_OK);
    data_score_writer_free(&writer);
    must(data_token_scores_open(path, words, &again, NULL) == SIFR_OK);
    must(again.rows == s->rows && again.entries == s->entries && again.top == s->top);
    data_token_scores_close(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    data_token_scores scores;
    sifr_error error = {0};
    int64_t top;
    double temperature;
    if (size == 0) return 0;
    int64_t words = data[0] % 2 ? WORDS : 0;
    const char *path = write_input(data + 1, size - 1);
    sifr_status peeked = data_token_scores_peek(path, &top, &temperature, &error);
    if (peeked != SIFR_OK) check_said(peeked, &error);
    error = (sifr_error){0};
    sifr_status status = data_token_scores_open(path, words, &scores, &error);
    if (status != SIFR_OK) {
        check_said(status, &error);
        return 0;
    }
    must(peeked == SIFR_OK && top == scores.top && temperature == scores.temperature);
    check_scores(&scores, words);
    if (scores.entries < 64) write_again(&scores, words);
    data_token_scores_close(&scores);
    return 0;
}
