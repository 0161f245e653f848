/* A vocabulary that 1, 2, 4 or 8 tensor ranks divide in blocks, unevenly, some having none: from
 * the same hidden states the losses have the bits of one rank with all words; the gradients of the
 * words are theirs, and the sum of the ranks' gradients of x is that of one. A table of them gives
 * the rows of one, to the sign of 0, and their gradients. in test_asan */
#include "base/checked.h"
#include "device/head_matrices.h"
#include "model/tensor_parts.h"

enum { MOST_RANKS = 8 };

typedef struct words_case {
    int64_t rows, width, words;
    bool biased;
    double softcap;
} words_case;

/* Of 300 words the blocks are 256 and 44; of 20,000 there are 20, the last one of 544. */
static const words_case cases[] = {{70, 24, 300, false, 0},   {1100, 16, 300, true, 2.5},
                                   {130, 16, 20000, true, 0}, {200, 24, 20000, false, 4},
                                   {1030, 8, 1500, false, 0}, {5, 8, 97, true, 0}};
enum { CASES = sizeof cases / sizeof *cases };

static const device_step step = {.gradient_scale = 0.37f, .training = true};

static device_words words_at(int64_t all, int32_t ranks, int32_t place) {
    int64_t block = device_words_block(all);
    model_portion blocks = model_portion_of(device_word_blocks(all), ranks, place);
    int64_t first = base_min_i64(blocks.first * block, all);
    return (device_words){first, base_min_i64(blocks.end * block, all) - first, all};
}

/* Rows of these words, and of NaNs behind them, as many as the rank with the most has. */
static device_matrix rows_of(const device_matrix *m, device_words words, int64_t room) {
    device_matrix part = case_matrix(room, m->columns, m->dtype, 1, 1);
    for (int64_t r = 0; r < room; r++)
        for (int64_t c = 0; c < m->columns; c++)
            case_set(&part, r, c, r < words.count ? case_get(m, words.first + r, c) : 7);
    return part;
}

static device_matrix columns_of(const device_matrix *m, device_words words, int64_t room) {
    device_matrix part = case_matrix(1, room, m->dtype, 1, 1);
    for (int64_t c = 0; c < room; c++)
        case_set(&part, 0, c, c < words.count ? case_get(m, 0, words.first + c) : 7);
    return part;
}

static head_matrices make_operands(const words_case *c, base_dtype type, bool accumulate) {
    head_matrices m = {.x = case_matrix(c->rows, c->width, type, 1, 1),
                       .labels = case_matrix(c->rows, 1, BASE_INT32, 2, 0),
                       .w = case_matrix(c->words, c->width, type, 3, 1),
                       .bias = case_matrix(1, c->words, type, 8, 1),
                       .dx_before = case_matrix(c->rows, c->width, type, 4, 0.1),
                       .dw_before = case_matrix(c->words, c->width, BASE_FP32, 5, 0.1),
                       .db_before = case_matrix(1, c->words, BASE_FP32, 9, 0.1),
                       .accumulate = accumulate};
    if (!c->biased) m.bias.dtype = m.db_before.dtype = BASE_NONE;
    for (int64_t r = 0; r < c->rows; r++) {
        base_random4 random = base_philox(9, (uint64_t)r, 0);
        case_set(&m.labels, r, 0, r % 5 == 3 ? -100 : (double)(random.v[0] % (uint64_t)c->words));
    }
    return m;
}

static device_call head_call(const words_case *c, const head_matrices *m, device_kernel kernel,
                             device_words words) {
    device_call call = {
        .kernel = kernel, .x = {m->x, m->labels}, .w = {m->w, m->bias}, .y = m->y, .step = &step};
    call.attributes.head.softcap = (float)c->softcap;
    call.attributes.head.words = words;
    return call;
}

typedef struct rank_part {
    device_words words;
    head_matrices m;
    device_matrix statistics;
} rank_part;

static rank_part open_rank(const words_case *c, const head_matrices *whole, int32_t ranks,
                           int32_t place) {
    int64_t room = words_at(c->words, ranks, 0).count;
    rank_part r = {.words = words_at(c->words, ranks, place), .m = *whole};
    r.m.w = rows_of(&whole->w, r.words, room);
    r.m.dw_before = rows_of(&whole->dw_before, r.words, room);
    if (c->biased) r.m.bias = columns_of(&whole->bias, r.words, room);
    if (c->biased) r.m.db_before = columns_of(&whole->db_before, r.words, room);
    head_begin(&r.m, case_matrix(c->rows, 1, BASE_FP32, 6, 1));
    r.statistics = case_matrix(c->rows, device_word_statistics(c->words) + 1, BASE_FP32, 7, 1);
    return r;
}

static void close_rank(const words_case *c, rank_part *r) {
    head_end(&r->m);
    free(r->m.w.data);
    free(r->m.dw_before.data);
    free(r->statistics.data);
    if (!c->biased) return;
    free(r->m.bias.data);
    free(r->m.db_before.data);
}

static void add_up(rank_part *parts, int32_t ranks) {
    int64_t count = parts[0].statistics.rows * parts[0].statistics.columns;
    for (int32_t r = 1; r < ranks; r++)
        for (int64_t i = 0; i < count; i++)
            ((float *)parts[0].statistics.data)[i] += ((float *)parts[r].statistics.data)[i];
    for (int32_t r = 1; r < ranks; r++)
        memcpy(parts[r].statistics.data, parts[0].statistics.data, (size_t)count * sizeof(float));
}

/* What rounding of a sum in another order, or of a gradient to 16 bits on each rank, may change. */
static void expect_close(const char *what, double have, double want, double size, base_dtype type) {
    double allowed = (type == BASE_FP32 ? 1e-5 : type == BASE_BF16 ? 0x1p-6 : 0x1p-8) * size;
    if (!(fabs(have - want) <= allowed)) fail_msg("%s: %.9g, not %.9g", what, have, want);
}

static double largest_of(const device_matrix *m) {
    double largest = 1e-30;
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t c = 0; c < m->columns; c++)
            if (fabs(case_get(m, r, c)) > largest) largest = fabs(case_get(m, r, c));
    return largest;
}

static void expect_words(const rank_part *r, const head_matrices *want, double size) {
    for (int64_t i = 0; i < r->words.count; i++)
        for (int64_t k = 0; k < r->m.dw.columns; k++)
            expect_close("dw", case_get(&r->m.dw, i, k), case_get(&want->dw, r->words.first + i, k),
                         size, r->m.x.dtype);
    for (int64_t i = 0; want->db.dtype != BASE_NONE && i < r->words.count; i++)
        expect_close("db", case_get(&r->m.db, 0, i), case_get(&want->db, 0, r->words.first + i),
                     size, r->m.x.dtype);
    for (int64_t i = r->words.count; i < r->m.dw.rows; i++) /* of no word */
        for (int64_t k = 0; k < r->m.dw.columns; k++)
            assert_true(case_get(&r->m.dw, i, k) == (r->m.accumulate ? 7 : 0));
}

static void expect_input(const rank_part *parts, int32_t ranks, const head_matrices *want) {
    double size = largest_of(&want->dx);
    for (int64_t r = 0; r < want->dx.rows; r++)
        for (int64_t c = 0; c < want->dx.columns; c++) {
            double sum = 0;
            for (int32_t p = 0; p < ranks; p++) sum += case_get(&parts[p].m.dx, r, c);
            if (want->accumulate) sum -= (ranks - 1) * case_get(&want->dx_before, r, c);
            expect_close("dx", sum, case_get(&want->dx, r, c), size * ranks, want->x.dtype);
        }
}

static void divide(device *dev, const words_case *c, const head_matrices *want, int32_t ranks) {
    rank_part parts[MOST_RANKS];
    double size = largest_of(&want->dw);
    for (int32_t p = 0; p < ranks; p++) {
        parts[p] = open_rank(c, want, ranks, p);
        device_call call = head_call(c, &parts[p].m, DEVICE_HEAD_STATISTICS, parts[p].words);
        call.y = parts[p].statistics;
        case_run(dev, &call);
    }
    add_up(parts, ranks);
    for (int32_t p = 0; p < ranks; p++) {
        device_call call = head_call(c, &parts[p].m, DEVICE_HEAD_LOSS, parts[p].words);
        call.x[3] = parts[p].statistics;
        case_run(dev, &call);
        assert_memory_equal(parts[p].m.y.data, want->y.data, case_bytes(&want->y));
        memset(parts[p].m.y.data, 0xff, case_bytes(&want->y));
        call.kernel = DEVICE_HEAD_LOSS_BACKWARD;
        head_with_gradients(&parts[p].m, &call);
        case_run(dev, &call);
        assert_memory_equal(parts[p].m.y.data, want->y.data, case_bytes(&want->y));
        expect_words(&parts[p], want, size);
    }
    expect_input(parts, ranks, want);
    for (int32_t p = 0; p < ranks; p++) close_rank(c, &parts[p]);
}

static void one_loss(void **state) {
    (void)state;
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    for (int i = 0; i < CASES; i++) {
        for (int t = 0; t < 3; t++) {
            device *dev = case_device(1 + i % 3, case_isas[i % CASE_ISAS]);
            if (!dev) dev = case_device(1 + i % 3, "plain");
            assert_non_null(dev);
            head_matrices m = make_operands(&cases[i], types[t], i % 2);
            head_begin(&m, case_matrix(cases[i].rows, 1, BASE_FP32, 6, 1));
            device_call call =
                head_call(&cases[i], &m, DEVICE_HEAD_LOSS_BACKWARD, (device_words){0});
            head_with_gradients(&m, &call);
            case_run(dev, &call);
            for (int32_t ranks = 1; ranks <= MOST_RANKS; ranks *= 2)
                divide(dev, &cases[i], &m, ranks);
            divide(dev, &cases[i], &m, 3);
            head_end(&m);
            head_free(&m);
            device_close(dev);
        }
    }
}

/* --- pairs --- */

/* The sum of the ranks' statistics, in `sum`. */
static void add_statistics(device *dev, const words_case *c, const head_matrices *m, int32_t ranks,
                           const device_matrix *sum) {
    rank_part parts[MOST_RANKS];
    for (int32_t p = 0; p < ranks; p++) {
        parts[p] = open_rank(c, m, ranks, p);
        device_call call = head_call(c, &parts[p].m, DEVICE_HEAD_STATISTICS, parts[p].words);
        call.y = parts[p].statistics;
        case_run(dev, &call);
    }
    add_up(parts, ranks);
    memcpy(sum->data, parts[0].statistics.data, case_bytes(sum));
    for (int32_t p = 0; p < ranks; p++) close_rank(c, &parts[p]);
}

static device_call pair_call(const words_case *c, const head_matrices *m, device_kernel kernel,
                             const device_matrix *numbers, device_words words) {
    device_call call = head_call(c, m, kernel, words);
    call.x[2] = *numbers;
    call.attributes.head.preference = SIFR_PREFERENCE_SIGMOID;
    call.attributes.head.beta = 0.3f;
    call.attributes.head.length = c->rows / 4;
    return call;
}

/* Losses of pairs follow from the log-probabilities of labels, so they have the same bits, too. */
static void one_preference(void **state) {
    (void)state;
    static const words_case pairs[] = {{80, 16, 300, false, 0}, {1200, 8, 700, true, 3}};
    device *dev = case_device(2, "plain");
    for (int i = 0; i < 2; i++) {
        const words_case *c = &pairs[i];
        head_matrices m = make_operands(c, BASE_FP32, false);
        device_matrix numbers = case_matrix(c->rows, 1, BASE_FP32, 12, 1);
        head_begin(&m, case_matrix(2, c->rows, BASE_FP32, 6, 1));
        device_call call =
            pair_call(c, &m, DEVICE_HEAD_PREFERENCE_BACKWARD, &numbers, (device_words){0});
        head_with_gradients(&m, &call);
        case_run(dev, &call);
        for (int32_t ranks = 2; ranks <= 4; ranks *= 2) {
            rank_part parts[MOST_RANKS];
            device_matrix sum =
                case_matrix(c->rows, device_word_statistics(c->words) + 1, BASE_FP32, 7, 1);
            add_statistics(dev, c, &m, ranks, &sum);
            for (int32_t p = 0; p < ranks; p++) {
                parts[p] = open_rank(c, &m, ranks, p);
                free(parts[p].m.y.data);
                parts[p].m.y = case_matrix(2, c->rows, BASE_FP32, 6, 1);
                device_call part = pair_call(c, &parts[p].m, DEVICE_HEAD_PREFERENCE_BACKWARD,
                                             &numbers, parts[p].words);
                part.x[3] = sum;
                head_with_gradients(&parts[p].m, &part);
                case_run(dev, &part);
                assert_memory_equal(parts[p].m.y.data, m.y.data, case_bytes(&m.y));
                expect_words(&parts[p], &m, largest_of(&m.dw));
            }
            expect_input(parts, ranks, &m);
            for (int32_t p = 0; p < ranks; p++) close_rank(c, &parts[p]);
            free(sum.data);
        }
        free(numbers.data);
        head_end(&m);
        head_free(&m);
    }
    device_close(dev);
}

/* --- the table --- */

static void put_sum(device *dev, const device_matrix *table, const device_matrix *ids,
                    device_words words, int64_t room, const device_matrix *sum, bool first) {
    device_matrix part = rows_of(table, words, room);
    device_matrix y = case_copy(sum);
    device_call call = {.kernel = DEVICE_EMBEDDING, .x = {*ids}, .w = {part}, .y = y};
    call.attributes.embedding.words = words;
    case_run(dev, &call);
    for (int64_t i = 0; i < sum->rows * sum->columns; i++) {
        float *to = (float *)sum->data + i, value = ((float *)y.data)[i];
        *to = first ? value : *to + value;
    }
    free(part.data);
    free(y.data);
}

static void expect_gradient(device *dev, const device_matrix *dy, const device_matrix *ids,
                            device_words words, int64_t room, const device_matrix *want) {
    device_matrix dw = case_matrix(room, dy->columns, BASE_FP32, 1, 1);
    device_call call = {.kernel = DEVICE_EMBEDDING_BACKWARD, .x = {*ids}, .dy = *dy, .dw = {dw}};
    call.attributes.embedding =
        (device_embedding_attributes){.padded = true, .padding = 3, .words = words};
    case_run(dev, &call);
    for (int64_t r = 0; r < room; r++)
        for (int64_t c = 0; c < dw.columns; c++)
            assert_true(case_get(&dw, r, c) ==
                        (r < words.count ? case_get(want, words.first + r, c) : 0));
    free(dw.data);
}

static void one_table(void **state) {
    (void)state;
    static const int64_t vocabularies[] = {300, 20000};
    device *dev = case_device(2, "plain");
    for (int v = 0; v < 2; v++) {
        int64_t all = vocabularies[v], rows = 200, width = 12;
        device_matrix table = case_matrix(all, width, BASE_FP32, 1, 1);
        device_matrix ids = case_matrix(rows, 1, BASE_INT32, 2, 0);
        for (int64_t r = 0; r < rows; r++)
            case_set(&ids, r, 0,
                     r < 4 ? 3 : (double)(base_philox(9, (uint64_t)r, 0).v[0] % (uint64_t)all));
        case_set(&table, 3, 1, -0.0);
        case_set(&table, 3, 2, 0.0);
        device_matrix want = case_matrix(rows, width, BASE_FP32, 3, 1), sum = case_copy(&want);
        device_matrix dy = case_matrix(rows, width, BASE_FP32, 4, 1);
        device_matrix dw = case_matrix(all, width, BASE_FP32, 5, 1);
        device_call call = {.kernel = DEVICE_EMBEDDING, .x = {ids}, .w = {table}, .y = want};
        case_run(dev, &call);
        device_call back = {.kernel = DEVICE_EMBEDDING_BACKWARD, .x = {ids}, .dy = dy, .dw = {dw}};
        back.attributes.embedding = (device_embedding_attributes){.padded = true, .padding = 3};
        case_run(dev, &back);
        for (int32_t ranks = 2; ranks <= MOST_RANKS; ranks *= 2) {
            int64_t room = words_at(all, ranks, 0).count;
            for (int32_t p = 0; p < ranks; p++) {
                put_sum(dev, &table, &ids, words_at(all, ranks, p), room, &sum, p == 0);
                expect_gradient(dev, &dy, &ids, words_at(all, ranks, p), room, &dw);
            }
            assert_memory_equal(sum.data, want.data, case_bytes(&want));
        }
        device_matrix *all_of[] = {&table, &ids, &want, &sum, &dy, &dw};
        for (int i = 0; i < 6; i++) free(all_of[i]->data);
    }
    device_close(dev);
}

/* A rank has whole blocks of the vocabulary, in the room that it has. */
static void wrong_words(void **state) {
    (void)state;
    static const device_words wrong[] = {
        {0, 200, 300}, {1, 255, 300}, {256, 45, 300}, {-256, 256, 300}, {0, 300, 300}};
    words_case c = {4, 8, 256, false, 0};
    sifr_error error;
    device *dev = case_device(1, "plain");
    head_matrices m = make_operands(&c, BASE_FP32, false);
    head_begin(&m, case_matrix(c.rows, 5, BASE_FP32, 6, 1));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        device_call call = head_call(&c, &m, DEVICE_HEAD_STATISTICS, wrong[i]);
        assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    }
    device_call call = head_call(&c, &m, DEVICE_HEAD_STATISTICS, (device_words){0, 256, 300});
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_OK);
    call.y.columns = call.y.stride = 4;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    call = head_call(&c, &m, DEVICE_HEAD_LOSS, (device_words){0, 256, 300});
    call.y.columns = call.y.stride = 1;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE); /* without statistics */
    head_end(&m);
    head_free(&m);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_loss), cmocka_unit_test(one_preference),
                                       cmocka_unit_test(one_table), cmocka_unit_test(wrong_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
