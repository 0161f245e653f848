/* The keys about profiling: which operations are logged, which steps are traced. */
#include "config/config_case.h"

#include "comm/comm.h"

enum {
    GATHER = 1 << COMM_ALL_GATHER,
    REDUCE = 1 << COMM_REDUCE_SCATTER,
    CONTROL = 1 << COMM_CONTROL,
    ALL = (1 << COMM_OPERATIONS) - 1
};

static void operations(const char *section, bool enabled, uint32_t want) {
    char text[256];
    snprintf(text, sizeof text, "{\"comms_logger\": {%s}}", section);
    config_case *c = config_case_text(text);
    config_case_accepted(c);
    assert_int_equal(c->config.comms_logger.enabled, enabled);
    assert_int_equal(c->config.comms_logger.operations, want);
    config_case_free(c);
}

static void logged_operations(void **state) {
    (void)state;
    operations("", false, ALL);
    operations("\"enabled\": true", true, ALL);
    operations("\"enabled\": true, \"prof_ops\": [\"broadcast\"]", true, ALL);
    operations("\"enabled\": true, \"prof_all\": false", true, 0);
    operations("\"enabled\": true, \"prof_all\": false, \"prof_ops\": [\"all_gather\"]", true,
               GATHER);
    operations("\"enabled\": true, \"prof_all\": false,"
               " \"prof_ops\": [\"reduce_scatter_tensor\", \"barrier\"]",
               true, REDUCE | CONTROL);
    operations("\"enabled\": true, \"prof_all\": false, \"prof_ops\": [\"all_reduce\"]", true,
               GATHER | REDUCE | 1 << COMM_ALL_REDUCE);
    operations("\"enabled\": true, \"prof_all\": false, \"prof_ops\": [\"send\", \"irecv\"]", true,
               1 << COMM_SEND | 1 << COMM_RECEIVE);
    config_refused("{\"comms_logger\": {\"enabled\": true, \"prof_ops\": [\"all_to_all\"]}}",
                   "ds.json: comms_logger.prof_ops: \"all_to_all\" is not an operation of a run ("
                   "all_gather, reduce_scatter, control, send and recv are)");
    config_said("{\"comms_logger\": {\"enabled\": true, \"debug\": true}}", "comms_logger.debug",
                "sifr.trace names each");
}

static void steps(const char *text, int64_t first, int64_t last) {
    config_case *c = config_case_flags("{}", 1, "trace", "t.json", "trace-steps", text, NULL);
    config_case_accepted(c);
    assert_string_equal(c->config.trace, "t.json");
    assert_int_equal(c->config.trace_first, first);
    assert_int_equal(c->config.trace_last, last);
    config_case_free(c);
}

static void traced_steps(void **state) {
    (void)state;
    steps("3..5", 3, 5);
    steps("7", 7, 7);
    steps("1..1", 1, 1);
    config_case *c = config_case_flags("{}", 1, "trace", "t.json", NULL);
    config_case_accepted(c);
    assert_int_equal(c->config.trace_first, 0);
    config_case_free(c);
    static const char *const wrong[] = {"0..3", "5..3",  "3..", "..3", "a",
                                        "3-5",  "3..5x", "+3",  "-1",  "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char message[256];
        snprintf(message, sizeof message,
                 "--trace-steps: \"%s\" are no steps; give one or a range, counted from 1, such as "
                 "3..5",
                 wrong[i]);
        config_case_refused(
            config_case_flags("{}", 1, "trace", "t.json", "trace-steps", wrong[i], NULL), message);
    }
    config_refused("{\"sifr\": {\"trace_steps\": \"3..5\"}}",
                   "ds.json: sifr.trace_steps: without a trace: give its file, too (--trace FILE)");
}

static void memory(void **state) {
    (void)state;
    config_case *c = config_case_text("{\"memory_breakdown\": true}");
    config_case_accepted(c);
    assert_true(c->config.memory_breakdown);
    config_case_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(logged_operations),
                                       cmocka_unit_test(traced_steps), cmocka_unit_test(memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
