/* Steps over epochs: the numbers that transformers' Trainer has, and what holds for any. */
#include <jansson.h>
#include <math.h>

#include "support/scratch.h"

#include "data/epochs.h"

static json_t *read_golden(void) {
    char path[BASE_PATH_LENGTH];
    const char *source = getenv("SOURCE");
    json_error_t error;
    snprintf(path, sizeof path, "%s/tests/golden/last_batch/counts.json", source ? source : ".");
    json_t *golden = json_load_file(path, 0, &error);
    if (!golden) fail_msg("%s: %s", path, error.text);
    return golden;
}

static int64_t number(const json_t *item, const char *key) {
    return json_integer_value(json_object_get(item, key));
}

/* The rows and the epoch of each step, and that there are no more. */
static void compare_case(const json_t *item) {
    const json_t *steps = json_object_get(item, "steps");
    bool drops = json_is_true(json_object_get(item, "drop_last"));
    int64_t micro = number(item, "micro"), rows = 0, first;
    data_epochs e =
        data_epochs_make(drops ? DATA_LAST_DROPPED : DATA_LAST_SHORT, number(item, "rows"),
                         micro * number(item, "accumulation"), micro);
    const json_t *passes = json_object_get(item, "num_train_epochs");
    if (passes)
        assert_int_equal(data_epochs_steps(&e, json_real_value(passes)), json_array_size(steps));
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        int64_t count = data_epochs_samples(&e, (int64_t)i, &first);
        assert_int_equal(count, json_integer_value(json_array_get(step, 0)));
        rows += count;
        assert_int_equal(data_epochs_trained(&e, (int64_t)i + 1), rows);
        double epoch = json_number_value(json_array_get(step, 1));
        assert_true(fabs(data_epochs_passed(&e, (int64_t)i + 1) - epoch) < 1e-9);
    }
}

static void as_the_trainer(void **state) {
    (void)state;
    json_t *golden = read_golden(), *item;
    size_t i;
    assert_true(json_array_size(json_object_get(golden, "cases")) >= 50);
    json_array_foreach(json_object_get(golden, "cases"), i, item) compare_case(item);
    json_decref(golden);
}

/* Each place of an epoch that is used comes once, and no step has samples of two epochs. */
static void each_once(void **state) {
    (void)state;
    for (int64_t windows = 1; windows < 30; windows++)
        for (int64_t micro = 1; micro < 5; micro++)
            for (int64_t batch = micro; batch < 25; batch += micro)
                for (int drops = 0; drops < 2; drops++) {
                    data_epochs e = data_epochs_make((data_last_batch)drops, windows, batch, micro);
                    int64_t next = 0, first;
                    assert_int_equal(e.used, drops ? windows / micro * micro : windows);
                    for (int64_t step = 0; e.steps && step < 3 * e.steps; step++) {
                        int64_t count = data_epochs_samples(&e, step, &first);
                        if (step % e.steps == 0) next = step / e.steps * windows;
                        assert_int_equal(first, next);
                        assert_in_range(count, 1, batch);
                        next += count;
                        assert_in_range(next - step / e.steps * windows, 1, e.used);
                        bool ends = (step + 1) % e.steps == 0;
                        assert_true(ends == (next == step / e.steps * windows + e.used));
                    }
                }
}

/* Of a stream: full batches, one behind the other. */
static void joined(void **state) {
    (void)state;
    int64_t first;
    data_epochs e = data_epochs_make(DATA_LAST_JOINED, 12, 8, 2);
    assert_int_equal(data_epochs_steps(&e, 3), 4);
    assert_int_equal(data_epochs_steps(&e, 0.5), 0);
    assert_int_equal(data_epochs_samples(&e, 1, &first), 8);
    assert_int_equal(first, 8);
    assert_int_equal(data_epochs_trained(&e, 3), 24);
    assert_true(data_epochs_passed(&e, 3) == 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_trainer),
        cmocka_unit_test(each_once),
        cmocka_unit_test(joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
