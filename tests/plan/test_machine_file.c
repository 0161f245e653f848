/* Descriptions of machines in files: what they may say, and what is wrong with others. */
#include "plan/price/price.h"
#include "support/scratch.h"

static const plan_machine known = {
    .memory_bytes = 1e10, .disk_bytes = 2e9, .room_bytes = 7, .host = {1e-5, 4e9}};

/* Each key is one field; what a file does not name stays. */
static void files(void **state) {
    (void)state;
    plan_machine m = known;
    const char *all = scratch_text(
        "all.json", "{\"version\": 1, \"fp32_operations_per_s\": 1, \"bf16_operations_per_s\": 2, "
                    "\"memory_bytes_per_s\": 3, \"disk_bytes_per_s\": 4, \"copy_bytes_per_s\": 5, "
                    "\"instruction_s\": 6, \"host_latency_s\": 7, \"host_bytes_per_s\": 8, "
                    "\"network_latency_s\": 9, \"network_bytes_per_s\": 10, \"ranks_per_host\": 11,"
                    "\"room_bytes\": 12, \"host_room_bytes\": 13, \"separate_memory\": true}");
    assert_int_equal(plan_machine_load(all, &m, NULL), SIFR_OK);
    const double fields[] = {m.fp32_operations,
                             m.bf16_operations,
                             m.memory_bytes,
                             m.disk_bytes,
                             m.copy_bytes,
                             m.instruction_seconds,
                             m.host.latency_seconds,
                             m.host.bytes_per_second,
                             m.network.latency_seconds,
                             m.network.bytes_per_second,
                             m.ranks_per_host,
                             (double)m.room_bytes,
                             (double)m.host_room_bytes};
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
        assert_true(fields[f] == (double)f + 1);
    assert_true(m.separate);
    m = known;
    const char *some = scratch_text("some.json", "{\"room_bytes\": 5e9, \"disk_bytes_per_s\": null,"
                                                 "\"host_latency_s\": 0}");
    assert_int_equal(plan_machine_load(some, &m, NULL), SIFR_OK);
    assert_int_equal(m.room_bytes, 5000000000);
    assert_true(m.disk_bytes == known.disk_bytes);
    assert_true(m.host.latency_seconds == 0);
    assert_true(m.host.bytes_per_second == known.host.bytes_per_second);
    m.disk_bytes = 0; /* not known, and null does not say it */
    assert_int_equal(plan_machine_load(some, &m, NULL), SIFR_OK);
    assert_true(m.disk_bytes == 0);
}

/* The message names file, key and value; nothing of the file is taken. */
static void wrong_files(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"{\"version\": 2}", "version 2: this sifr knows version 1"},
        {"[]", "must hold a JSON object"},
        {"{\"memory_bytes_per_s\": -3}", "memory_bytes_per_s: -3 must be a number above 0"},
        {"{\"fp32_operations_per_s\": 0}", "fp32_operations_per_s: 0 must be a number above 0"},
        {"{\"host_latency_s\": -1}", "host_latency_s: -1 must be a number of at least 0"},
        {"{\"disk_bytes_per_s\": \"fast\"}", "disk_bytes_per_s"},
        {"{\"ranks_per_host\": -1}", "ranks_per_host: -1 must be from 0"},
        {"{\"ranks_per_host\": 2147483648}", "ranks_per_host: 2147483648 must be from 0"},
        {"{\"room_bytes\": -1}", "room_bytes: -1 is not an amount of memory"},
        {"{\"copy_bytes_per_s\": 9, \"host_room_bytes\": -7}",
         "host_room_bytes: -7 is not an amount of memory"},
        {"{\"separate_memory\": 1}", "separate_memory"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        plan_machine m = known;
        sifr_error error = {0};
        const char *path = scratch_text("wrong.json", wrong[i][0]);
        assert_int_equal(plan_machine_load(path, &m, &error), SIFR_USAGE);
        assert_message(&error, path);
        assert_message(&error, wrong[i][1]);
        assert_memory_equal(&m, &known, sizeof m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(files), cmocka_unit_test(wrong_files)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
