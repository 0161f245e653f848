/* What the library refuses by itself: every field of sifr_settings beyond its row in the table of
 * keys, and a step without its inputs or with a rate that is not finite. */
#include <float.h>
#include <math.h>

#include "config/keys/config_keys.h"
#include "engine/small_model.h"
#include "sifr/engine.h"

enum { GROUPS = CONFIG_MOST_GROUPS, TRIES = 16 };

typedef struct capacity {
    sifr_model *model;
    sifr_settings settings; /* right ones, with all that a limit asks for */
    const config_key *row;
    size_t tried;
} capacity;

static sifr_optimizer_group groups[GROUPS];

static capacity open_room(void) {
    capacity r = {.model = small_model(SMALL_TIED), .settings = sifr_settings_defaults()};
    for (int i = 0; i < GROUPS; i++) groups[i] = (sifr_optimizer_group){"*", 1, -1};
    r.settings.optimizer.groups = groups;
    r.settings.precision = SIFR_FP16;
    r.settings.optimizer.type = SIFR_ADAFACTOR; /* 0 is no clip_threshold of it */
    r.settings.offload.optimizer.device = r.settings.offload.param.device = SIFR_TIER_NVME;
    return r;
}

/* --- one field --- */

static void allows(capacity *r, const void *value) {
    sifr_settings settings = r->settings;
    sifr_error error = {0};
    memcpy((char *)&settings + r->row->field - 1, value, r->row->size);
    if (sifr_settings_check(&settings, &error) != SIFR_OK)
        fail_msg("a right value is refused: %s", error.message);
    r->tried++;
}

/* By name, and by the call that makes an engine. */
static void refuses(capacity *r, const void *value) {
    sifr_settings settings = r->settings;
    sifr_engine *engine = NULL;
    sifr_error error = {0};
    char begin[96];
    snprintf(begin, sizeof begin, "%s: ", config_field_name(r->row));
    memcpy((char *)&settings + r->row->field - 1, value, r->row->size);
    if (sifr_engine_create(r->model, &settings, &engine, &error) != SIFR_USAGE)
        fail_msg("%sa wrong value is not refused: %s", begin, error.message);
    assert_null(engine);
    if (strncmp(error.message, begin, strlen(begin)) != 0)
        fail_msg("\"%s\" does not begin with %s", error.message, begin);
    assert_non_null(strstr(error.message, "docs/config.md"));
    r->tried++;
}

static void allows_real(capacity *r, double value) {
    allows(r, &value);
}

static void refuses_real(capacity *r, double value) {
    refuses(r, &value);
}

static void whole(capacity *r, bool right, int64_t value) {
    int32_t narrow = (int32_t)value;
    const void *field = r->row->size == sizeof value ? (void *)&value : &narrow;
    if (right)
        allows(r, field);
    else
        refuses(r, field);
}

static void check_real(capacity *r) {
    double most = config_fits_kernels(r->row, DBL_MAX) ? DBL_MAX : FLT_MAX;
    config_range range =
        r->row->range ? config_range_of(r->row->range) : (config_range){-most, most, false, false};
    double high = r->row->most ? strtod(r->row->most, NULL) : fmin(range.high, most);
    allows_real(r, range.open_low ? nextafter(range.low, INFINITY) : range.low);
    refuses_real(r, range.open_low ? range.low : nextafter(range.low, -INFINITY));
    allows_real(r, range.open_high ? nextafter(high, -INFINITY) : high);
    refuses_real(r, range.open_high ? high : nextafter(high, INFINITY));
    if (r->row->least) {
        double least = strtod(r->row->least, NULL);
        allows_real(r, least);
        refuses_real(r, nextafter(least, 0));
        refuses_real(r, nextafter(0, 1));
    }
    refuses_real(r, NAN);
    refuses_real(r, -NAN);
    refuses_real(r, INFINITY);
    refuses_real(r, -INFINITY);
}

static void check_choice(capacity *r) {
    int64_t choices = 1, later = 0;
    for (const char *c = r->row->choices; *c; c++) choices += *c == '|';
    for (const char *c = r->row->later; c && *c; c++) later += *c == '|';
    if (r->row->later) later++; /* they are the last words */
    for (int64_t i = 0; i < choices - later; i++) whole(r, true, i);
    for (int64_t i = choices - later; i <= choices; i++) whole(r, false, i);
    whole(r, false, -1);
    whole(r, false, 99);
    whole(r, false, INT32_MAX);
}

static void check_whole(capacity *r) {
    config_range range = config_range_of(r->row->range);
    int64_t least = (int64_t)range.low + range.open_low, most = INT64_MAX, unset = least;
    if (r->row->size == sizeof(int32_t)) most = INT32_MAX;
    if (isfinite(range.high)) most = (int64_t)range.high;
    if (r->row->most) most = strtoll(r->row->most, NULL, 10);
    for (const char *word = r->row->unset; word; word = strchr(word, '|')) {
        word += *word == '|';
        whole(r, true, strtoll(word, NULL, 10));
        if (strtoll(word, NULL, 10) < unset) unset = strtoll(word, NULL, 10);
    }
    whole(r, true, r->row->multiple ? r->row->multiple : least);
    whole(r, true, most);
    whole(r, false, unset - 1);
    whole(r, false, r->row->size == sizeof(int32_t) ? INT32_MIN : INT64_MIN);
    if (r->row->multiple) whole(r, false, r->row->multiple + 1);
    if (r->row->most || isfinite(range.high)) whole(r, false, most + 1);
}

static void check_bool(capacity *r) {
    for (int i = 0; i < 4; i++) {
        unsigned char value = (unsigned char)(i == 3 ? 255 : i);
        if (i < 2)
            allows(r, &value);
        else
            refuses(r, &value);
    }
}

static void check_field(capacity *r) {
    static const char text[] = "text";
    const char *const texts[] = {NULL, text};
    switch (r->row->type) {
    case CONFIG_NUMBER:
        check_real(r);
        return;
    case CONFIG_BOOL:
        check_bool(r);
        return;
    case CONFIG_TEXT: /* the device and the plan know which, and the disk */
        for (int i = 0; i < 2; i++) allows(r, &texts[i]);
        return;
    case CONFIG_CHOICE:
        check_choice(r);
        return;
    case CONFIG_INT:
    case CONFIG_BYTES:
        if (r->row->is_unsigned) { /* each value of it */
            allows(r, &(uint64_t){0});
            allows(r, &(uint64_t){UINT64_MAX});
        } else if (r->row->choices) {
            check_choice(r);
        } else {
            check_whole(r);
        }
        return;
    default:
        assert_string_equal(config_field_name(r->row), "optimizer.groups"); /* bad_groups */
        r->tried++;
    }
}

static void each_field(void **state) {
    (void)state;
    capacity r = open_room();
    size_t index = 0, fields = 0, checked = 0;
    while ((r.row = config_field_next(&index))) {
        size_t before = r.tried;
        fields++;
        check_field(&r);
        checked += r.tried > before;
    }
    printf("%zu fields, %zu checked\n", fields, checked);
    assert_int_equal(fields, checked);
    sifr_model_free(r.model);
}

/* No field without a row, and none with two: what no row has is padding. */
static void rows_are_all_fields(void **state) {
    (void)state;
    sifr_settings covered;
    memset(&covered, 0, sizeof covered);
    size_t index = 0;
    for (const config_key *row; (row = config_field_next(&index));) {
        unsigned char *field = (unsigned char *)&covered + row->field - 1;
        for (size_t i = 0; i < row->size; i++) {
            if (field[i]) fail_msg("%s has two rows", config_field_name(row));
            field[i] = 0xff;
        }
    }
#if __has_builtin(__builtin_clear_padding)
    sifr_settings all;
    memset(&all, 0xff, sizeof all);
    __builtin_clear_padding(&all);
    for (size_t i = 0; i < sizeof all; i++)
        if (((unsigned char *)&all)[i] != ((unsigned char *)&covered)[i])
            fail_msg("byte %zu of sifr_settings belongs to a field that has no row in "
                     "src/config/keys/",
                     i);
#else
    skip(); /* this compiler does not tell padding from fields */
#endif
}

/* --- what was taken without a word --- */

static void refuses_as(const sifr_settings *settings, const char *message) {
    sifr_model *model = small_model(SMALL_TIED);
    sifr_engine *engine = NULL;
    sifr_error error = {0};
    assert_int_equal(sifr_engine_create(model, settings, &engine, &error), SIFR_USAGE);
    assert_string_equal(error.message, message);
    sifr_model_free(model);
}

#define REFUSES(field_, value_, message_)                                                          \
    do {                                                                                           \
        sifr_settings set_ = sifr_settings_defaults();                                             \
        set_.field_ = value_;                                                                      \
        refuses_as(&set_, message_);                                                               \
    } while (0)

static void by_name(void **state) {
    (void)state;
    REFUSES(optimizer.ns_method, (sifr_ns_method)99,
            "optimizer.ns_method: 99 is none of 0 (gram), 1 (standard); its default is \"gram\" "
            "(docs/config.md: optimizer.params.ns_method)");
    REFUSES(optimizer.beta1, 5,
            "optimizer.beta1: 5 is not in [0, 0.99999997]; its default is 0.9 (docs/config.md: "
            "optimizer.params.betas)");
    REFUSES(optimizer.beta2, 0.99999999,
            "optimizer.beta2: 0.99999999 is not in [0, 0.99999997]; its default is 0.999 "
            "(docs/config.md: optimizer.params.betas)");
    REFUSES(optimizer.eps, NAN,
            "optimizer.eps: nan is not in [0, inf); its default is 1e-8 (docs/config.md: "
            "optimizer.params.eps)");
    REFUSES(optimizer.weight_decay, -3,
            "optimizer.weight_decay: -3 is not in [0, inf); its default is 0.0 (docs/config.md: "
            "optimizer.params.weight_decay)");
    REFUSES(optimizer.weight_decay, 9e307,
            "optimizer.weight_decay: 9e+307 is beyond what fp32 has, 3.40282e+38; its default is "
            "0.0 (docs/config.md: optimizer.params.weight_decay)");
    REFUSES(step_order, (sifr_step_order)9,
            "step_order: 9 is none of 0 (batch), 1 (unit), 2 (auto); its default is \"auto\" "
            "(docs/config.md: sifr.step_order)");
    REFUSES(zero.stage, 7,
            "zero.stage: 7 is none of 0, 1, 2, 3; its default is 0 (docs/config.md: "
            "zero_optimization.stage)");
    REFUSES(zero.reduce_bucket_size, -2,
            "zero.reduce_bucket_size: -2 is not in [0, inf), nor -1 (docs/config.md: "
            "zero_optimization.reduce_bucket_size)");
    REFUSES(gradient_accumulation_steps, 0,
            "gradient_accumulation_steps: 0 is not in [1, inf) (docs/config.md: "
            "gradient_accumulation_steps)");
}

/* As in a config, limits of what is not in use do not count. */
static void limits(void **state) {
    (void)state;
    sifr_settings s = sifr_settings_defaults();
    s.offload.aio.queue_depth = 4097;
    s.fp16.loss_scale = 0x1p127;
    assert_int_equal(sifr_settings_check(&s, NULL), SIFR_OK);
    s.offload.gradients = SIFR_TIER_NVME;
    refuses_as(&s, "offload.aio.queue_depth: 4097 is not in [1, 4096]; its default is 32 "
                   "(docs/config.md: aio.queue_depth)");
    s.offload.aio.queue_depth = 32;
    s.offload.aio.block_size = 1000;
    refuses_as(&s, "offload.aio.block_size: 1000 is not a multiple of 4096 in [1, 1073741824]; its "
                   "default is 1048576 (docs/config.md: aio.block_size)");
    s = sifr_settings_defaults();
    s.fp16.loss_scale = 1e-300;
    assert_int_equal(sifr_settings_check(&s, NULL), SIFR_OK);
    s.precision = SIFR_FP16;
    refuses_as(&s, "fp16.loss_scale: 1e-300 is not in [1.1754943508222875e-38, "
                   "8.507059173023462e+37], nor 0; its default is 0 (docs/config.md: "
                   "fp16.loss_scale)");
    REFUSES(mesh.shard_size, -1,
            "mesh.shard_size: -1 is not in [0, inf); its default is 0 (docs/config.md: "
            "sifr.shard_size)");
}

static void fields_together(void **state) {
    (void)state;
    sifr_settings s = sifr_settings_defaults();
    s.optimizer.nesterov = true;
    s.optimizer.min_coeff = 20;
    assert_int_equal(sifr_settings_check(&s, NULL), SIFR_OK); /* AdamW uses neither */
    s.optimizer.type = SIFR_SGD;
    refuses_as(&s, "optimizer.nesterov: true, with momentum 0 and dampening 0; Nesterov's momentum "
                   "takes a momentum above 0 and a dampening of 0, as in PyTorch");
    s.optimizer.type = SIFR_LAMB;
    refuses_as(&s, "optimizer.min_coeff: 20 is above optimizer.max_coeff 10; give a smaller one");
    s.optimizer.min_coeff = s.optimizer.clip_threshold = 0; /* of Adafactor, so not given */
    assert_int_equal(sifr_settings_check(&s, NULL), SIFR_OK);
    s.optimizer.clip_threshold = -1;
    assert_int_equal(sifr_settings_check(&s, NULL), SIFR_USAGE);
}

/* By the engine, and before it by the call that reads them first. */
static void bad_groups(void **state) {
    (void)state;
    static const struct {
        sifr_optimizer_group group;
        const char *message;
    } cases[] = {
        {{NULL, 1, -1},
         "optimizer.groups[0].match: NULL; give a shell pattern for names of weights"},
        {{"*", -1, -1},
         "optimizer.groups[0].lr_scale: -1 is not in [0, inf) (docs/config.md: sifr.groups)"},
        {{"*", NAN, -1},
         "optimizer.groups[0].lr_scale: nan is not in [0, inf) (docs/config.md: sifr.groups)"},
        {{"*", 1, INFINITY},
         "optimizer.groups[0].weight_decay: inf is not in (-inf, inf) (docs/config.md: "
         "sifr.groups)"}};
    sifr_model *model = small_model(SMALL_TIED);
    sifr_settings s = sifr_settings_defaults();
    sifr_error error = {0};
    s.optimizer.group_count = 1;
    refuses_as(&s, "optimizer.groups: NULL, and optimizer.group_count is 1; give that many groups, "
                   "or 0");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        s.optimizer.groups = &cases[i].group;
        refuses_as(&s, cases[i].message);
        assert_int_equal(sifr_model_group(model, &s.optimizer, &error), SIFR_USAGE);
        assert_string_equal(error.message, cases[i].message);
    }
    sifr_model_free(model);
}

/* --- a step --- */

enum { LENGTH = 8, SEQUENCES = 2, TOKENS = LENGTH * SEQUENCES };

static sifr_engine *open_engine(const sifr_model *model) {
    sifr_settings s = sifr_settings_defaults();
    s.micro_batch_size = SEQUENCES;
    s.seq_length = LENGTH;
    s.threads = 1;
    return small_engine(model, &s);
}

static void fill(int32_t *ids, int from) {
    for (int i = 0; i < TOKENS; i++) ids[i] = (from + 7 * i) % SMALL_WORDS;
}

static void right_step(sifr_engine *engine, int from) {
    int32_t tokens[TOKENS], labels[TOKENS];
    sifr_step_result result;
    sifr_error error = {0};
    fill(tokens, from);
    fill(labels, from + 7);
    sifr_batch batch = {.tokens = tokens, .labels = labels};
    assert_int_equal(sifr_engine_step(engine, &batch, 1e-3, &result, &error), SIFR_OK);
    assert_true(result.updated);
}

static void wrong_step(sifr_engine *engine, const sifr_batch *batch, double rate,
                       const char *message) {
    sifr_step_result result;
    sifr_error error = {0};
    assert_int_equal(sifr_engine_step(engine, batch, rate, &result, &error), SIFR_USAGE);
    assert_string_equal(error.message, message);
}

static void same_weights(const sifr_model *model, const sifr_engine *a, const sifr_engine *b) {
    sifr_error error = {0};
    for (size_t w = 0; w < model->weight_count; w++) {
        const model_weight *weight = &model->weights[w];
        size_t count = (size_t)(weight->rows * weight->columns);
        float *x = malloc(count * sizeof *x), *y = malloc(count * sizeof *y);
        assert_int_equal(sifr_engine_read_weight(a, weight->name, x, count, &error), SIFR_OK);
        assert_int_equal(sifr_engine_read_weight(b, weight->name, y, count, &error), SIFR_OK);
        assert_memory_equal(x, y, count * sizeof *x);
        free(x);
        free(y);
    }
}

/* Each wrong call after a right step, whose inputs the engine still has: it changes nothing, so
 * that the engine goes on like one that saw right steps alone. */
static void steps(void **state) {
    (void)state;
    static const char rate[] = " is not a finite number; give each step a rate that is, such as "
                               "1e-4";
    static const char missing[] = "s are missing; this model reads 16 of them for each micro batch";
    sifr_model *model = small_model(SMALL_TIED);
    sifr_engine *plain = open_engine(model), *engine = open_engine(model);
    int32_t ids[TOKENS];
    double loss;
    int64_t labelled;
    char message[128];
    sifr_error error = {0};
    fill(ids, 3);
    for (int t = 0; t < 2; t++) {
        right_step(plain, t);
        right_step(engine, t);
        snprintf(message, sizeof message, "batch: token%s", missing);
        wrong_step(engine, &(sifr_batch){.labels = ids}, 1e-3, message);
        assert_int_equal(
            sifr_engine_evaluate(engine, &(sifr_batch){.labels = ids}, &loss, &labelled, &error),
            SIFR_USAGE);
        assert_string_equal(error.message, message);
        snprintf(message, sizeof message, "batch: label%s", missing);
        wrong_step(engine, &(sifr_batch){.tokens = ids}, 1e-3, message);
        assert_int_equal(
            sifr_engine_evaluate(engine, &(sifr_batch){.tokens = ids}, &loss, &labelled, &error),
            SIFR_USAGE);
        assert_string_equal(error.message, message);
        sifr_batch right = {.tokens = ids, .labels = ids};
        snprintf(message, sizeof message, "learning_rate: nan%s", rate);
        wrong_step(engine, &right, NAN, message);
        snprintf(message, sizeof message, "learning_rate: inf%s", rate);
        wrong_step(engine, &right, INFINITY, message);
        snprintf(message, sizeof message, "learning_rate: -inf%s", rate);
        wrong_step(engine, &right, -INFINITY, message);
        wrong_step(engine, &right, 1e300,
                   "learning_rate: 1e+300 is not a finite number of fp32; give each step a rate "
                   "that is, such as 1e-4");
        assert_int_equal(sifr_engine_steps(engine), t + 1);
    }
    same_weights(model, plain, engine);
    sifr_engine_free(engine);
    sifr_engine_free(plain);
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_field),      cmocka_unit_test(rows_are_all_fields),
        cmocka_unit_test(by_name),         cmocka_unit_test(limits),
        cmocka_unit_test(fields_together), cmocka_unit_test(bad_groups),
        cmocka_unit_test(steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
