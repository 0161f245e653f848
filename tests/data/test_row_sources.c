/* Sources of rows: their weights and counts, the order of an epoch, the split, packing, groups by
 * length. */
#include "data/finetune_case.h"

/* Rows of one character each, from `first` on. */
static const char *write_rows(const char *name, int first, int count) {
    char text[2048];
    size_t used = 0;
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "{\"text\": \"%c%c\"}\n",
                                 'A' + first, 'a' + i);
    return scratch_text(name, text);
}

static void count_draws(const data_chat *chat, uint64_t seed, int64_t epoch, int *counts) {
    int64_t windows = data_chat_windows(chat);
    memset(counts, 0, 64 * sizeof *counts);
    for (int64_t i = 0; i < windows; i++) counts[data_chat_draw(chat, seed, epoch, i)]++;
}

static void draws_by_weight(void **state) {
    (void)state;
    int counts[64], more[64], total[64] = {0};
    set_template(plain_template);
    data_chat_source sources[2] = {source_of(write_rows("x.jsonl", 0, 10)),
                                   source_of(write_rows("y.jsonl", 1, 8))};
    data_chat_options options = options_for(sources, 2);
    data_chat *chat = open_rows(&options);
    uint64_t hash = data_chat_hash(chat);
    assert_int_equal(data_chat_windows(chat), 18);
    count_draws(chat, 42, 0, counts);
    for (int i = 0; i < 18; i++) assert_int_equal(counts[i], 1);
    assert_true(data_chat_draw(chat, 42, 0, 0) != data_chat_draw(chat, 42, 1, 0) ||
                data_chat_draw(chat, 42, 0, 1) != data_chat_draw(chat, 42, 1, 1));
    data_chat_close(chat);
    sources[0].weight = 0.5, sources[1].weight = 2;
    chat = open_rows(&options);
    assert_int_not_equal(data_chat_hash(chat), hash);
    assert_int_equal(data_chat_windows(chat), 5 + 16);
    for (int e = 0; e < 4; e++) {
        count_draws(chat, 42, e, counts);
        count_draws(chat, 42, e, more);
        assert_memory_equal(counts, more, sizeof counts);
        for (int i = 0; i < 18; i++) total[i] += counts[i];
    }
    /* Two epochs of a half draw each row once; each epoch draws the others twice. */
    for (int i = 0; i < 18; i++) assert_int_equal(total[i], i < 10 ? 2 : 8);
    data_chat_close(chat);
}

static void splits(void **state) {
    (void)state;
    set_template(plain_template);
    data_chat_source sources[2] = {source_of(write_rows("x.jsonl", 0, 10)),
                                   source_of(write_rows("y.jsonl", 1, 10))};
    data_chat_options options = options_for(sources, 2);
    data_chat *whole = open_rows(&options), *chat = open_rows(&options), *held, *other;
    assert_int_equal(data_chat_split(chat, 0.25, 42, &held, NULL), SIFR_OK);
    assert_int_equal(data_chat_count(chat)->rows, 15);
    assert_int_equal(data_chat_count(held)->rows, 5);
    assert_int_equal(data_chat_count(chat)->tokens + data_chat_count(held)->tokens,
                     data_chat_count(whole)->tokens);
    int seen[512] = {0};
    const data_chat *sides[2] = {chat, held};
    for (int s = 0; s < 2; s++)
        for (int64_t i = 0; i < data_chat_count(sides[s])->rows; i++) {
            const int32_t *ids;
            const bool *learned;
            int64_t length;
            data_chat_row_at(sides[s], i, &ids, &learned, &length);
            seen[(ids[0] * 31 + ids[1]) % 512]++;
        }
    int rows = 0;
    for (int i = 0; i < 512; i++) rows += seen[i];
    assert_int_equal(rows, 20);
    data_chat *again = open_rows(&options);
    assert_int_equal(data_chat_split(again, 0.25, 43, &other, NULL), SIFR_OK);
    assert_int_not_equal(data_chat_hash(other), data_chat_hash(held));
    data_chat_close(again);
    data_chat_close(other);
    data_chat_close(held);
    data_chat_close(chat);
    data_chat_close(whole);
}

/* So many rows of each source, or held out. */
static void counts_rows(void **state) {
    (void)state;
    set_template(plain_template);
    data_chat_source sources[2] = {source_of(write_rows("x.jsonl", 0, 10)),
                                   source_of(write_rows("y.jsonl", 1, 3))};
    data_chat_options options = options_for(sources, 2);
    options.max_rows = 4;
    data_chat *chat = open_rows(&options), *held;
    sifr_error error = {0};
    assert_int_equal(data_chat_count(chat)->rows, 4 + 3);
    assert_int_equal(data_chat_split(chat, 7, 42, &held, &error), SIFR_USAGE);
    assert_message(&error, "validation_split: 7 rows cannot be held out of 7");
    assert_int_equal(data_chat_split(chat, 2.5, 42, &held, &error), SIFR_USAGE);
    assert_int_equal(data_chat_split(chat, 2, 42, &held, &error), SIFR_OK);
    assert_int_equal(data_chat_count(chat)->rows, 5);
    assert_int_equal(data_chat_count(held)->rows, 2);
    data_chat_close(held);
    data_chat_close(chat);
    options.length = 2; /* all are longer */
    options.drop_long = true;
    assert_int_equal(data_chat_open(&options, &chat, &error), SIFR_FAILED);
    assert_message(&error, "0 are bad, 7 are longer than seq_length 2 and left out; look");
    options.length = 8;
    sources[1] = source_of(scratch_text("z.jsonl", "{\"text\": \"much longer than eight\"}\n"));
    chat = open_rows(&options);
    assert_int_equal(data_chat_count(chat)->rows, 4);
    assert_non_null(strstr(said, "data: 1 row is left out: longer than seq_length 8"));
    data_chat_close(chat);
}

/* Checks a sequence of packed rows: each is a segment that begins at position 0, its first token is
 * no label of what stands before it, and padding is a segment of its own. Returns the tokens of
 * rows, and adds each to `seen` by its second one. */
static int64_t check_sequence(const data_rows *rows, int64_t at, int *seen) {
    const int32_t *tokens = rows->tokens + at * LENGTH, *labels = rows->labels + at * LENGTH;
    const int32_t *segments = rows->segments + at * LENGTH;
    const int32_t *positions = rows->positions + at * LENGTH;
    int64_t filled = 0;
    for (int64_t i = 0; i < LENGTH; i++) {
        bool begins = i == 0 || segments[i] != segments[i - 1];
        assert_int_equal(positions[i], begins ? 0 : positions[i - 1] + 1);
        if (i) assert_int_equal(segments[i], segments[i - 1] + begins);
        if (i && begins) assert_int_equal(labels[i - 1], -100);
        if (labels[i] != -100) assert_int_equal(labels[i], tokens[i + 1]);
        if (tokens[i]) filled = i + 1;
        if (positions[i] == 1 && tokens[i]) seen[tokens[i] % 512]++;
    }
    for (int64_t i = filled; i < LENGTH; i++) assert_int_equal(positions[i], i - filled);
    return filled;
}

static void packs_rows(void **state) {
    (void)state;
    set_template(plain_template);
    data_chat_source sources[2] = {source_of(write_rows("x.jsonl", 0, 26)),
                                   source_of(write_rows("y.jsonl", 1, 20))};
    data_chat_options options = options_for(sources, 2);
    data_chat *chat = open_rows(&options), *held;
    sources[1].weight = 2;
    data_chat *twice = open_rows(&options);
    uint64_t hash = data_chat_hash(chat);
    assert_int_equal(data_chat_split(chat, 0.1, 42, &held, NULL), SIFR_OK);
    int64_t tokens = 0, rows_there = data_chat_count(chat)->rows;
    assert_int_equal(data_chat_sequences(chat), rows_there);
    assert_false(data_chat_is_packed(chat));
    assert_int_equal(data_chat_pack(chat, NULL), SIFR_OK);
    assert_true(data_chat_is_packed(chat));
    assert_int_not_equal(data_chat_hash(chat), hash);
    assert_int_equal(data_chat_count(chat)->rows, rows_there);
    int64_t sequences = data_chat_sequences(chat);
    assert_int_equal(data_chat_windows(chat), sequences);
    assert_true(sequences > 2);
    assert_true(sequences < 10);
    data_rows rows;
    int seen[512] = {0}, total = 0;
    assert_int_equal(data_rows_make(2, LENGTH, DATA_ROWS_PACKED, 0, &rows, NULL), SIFR_OK);
    for (int64_t i = 0; i < sequences; i++) {
        data_chat_read(chat, data_chat_draw(chat, 42, 0, i), &rows, 1);
        tokens += check_sequence(&rows, 1, seen);
    }
    for (int i = 0; i < 512; i++) total += seen[i];
    assert_int_equal(total, rows_there);
    assert_int_equal(tokens, data_chat_count(chat)->tokens);
    /* A source's weight counts its sequences. */
    assert_int_equal(data_chat_pack(twice, NULL), SIFR_OK);
    options.count = 1;
    data_chat *first = open_rows(&options);
    assert_int_equal(data_chat_pack(first, NULL), SIFR_OK);
    int64_t draws[2] = {0}, of_first = data_chat_sequences(first);
    for (int64_t i = 0; i < data_chat_windows(twice); i++)
        draws[data_chat_draw(twice, 42, 0, i) >= of_first]++;
    assert_int_equal(draws[0], of_first);
    assert_int_equal(draws[1], 2 * (data_chat_sequences(twice) - of_first));
    data_rows_free(&rows);
    data_chat_close(first);
    data_chat_close(twice);
    data_chat_close(held);
    data_chat_close(chat);
}

static int64_t length_at(const data_chat *chat, int64_t row) {
    const int32_t *ids;
    const bool *learned;
    int64_t whole;
    return data_chat_row_at(chat, row, &ids, &learned, &whole);
}

/* 45 rows in steps of 2: runs of 5 steps, each of the rows that an epoch has there without groups,
 * the longest first; then the longest of all and the first change places. */
static void groups_rows(void **state) {
    (void)state;
    enum { ROWS = 45, RUN = 10 };
    char text[8192];
    size_t used = 0;
    set_template(plain_template);
    for (int i = 0; i < ROWS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "{\"text\": \"%.*s\"}\n",
                                 1 + i * 17 % 23, "abcdefghijklmnopqrstuvwxyz");
    data_chat_source source = source_of(scratch_text("x.jsonl", text));
    data_chat_options options = options_for(&source, 1);
    data_chat *chat = open_rows(&options), *plain = open_rows(&options);
    assert_int_equal(data_chat_group(chat, 2, NULL), SIFR_OK);
    assert_int_not_equal(data_chat_hash(chat), data_chat_hash(plain));
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int64_t want[ROWS], longest = 0, back = epoch ? epoch - 1 : 0;
        for (int i = 0; i < ROWS; i++) want[i] = data_chat_draw(plain, 42, epoch, i);
        for (int first = 0; first < ROWS; first += RUN) {
            int end = first + RUN < ROWS ? first + RUN : ROWS;
            for (int i = first + 1; i < end; i++) /* by insertion, which keeps equals in order */
                for (int k = i; k > first; k--) {
                    int64_t row = want[k];
                    if (length_at(plain, want[k - 1]) >= length_at(plain, row)) break;
                    want[k] = want[k - 1], want[k - 1] = row;
                }
            if (length_at(plain, want[first]) > length_at(plain, want[longest])) longest = first;
        }
        int64_t row = want[0];
        want[0] = want[longest], want[longest] = row;
        for (int i = 0; i < ROWS; i++) {
            assert_int_equal(data_chat_draw(chat, 42, epoch, i), want[i]);
            (void)data_chat_draw(chat, 42, back, i); /* the epoch before stays at hand */
        }
    }
    assert_int_not_equal(data_chat_draw(chat, 43, 0, 1), data_chat_draw(chat, 42, 0, 1));
    data_chat_close(plain);
    data_chat_close(chat);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(draws_by_weight, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(splits, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(counts_rows, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(packs_rows, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(groups_rows, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
