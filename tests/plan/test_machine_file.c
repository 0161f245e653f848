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

/* A GPU has memory of its own, said or not; what a file does not name stays. */
static void devices(void **state) {
    (void)state;
    static const struct {
        const char *text;
        plan_machine_device device;
        bool separate;
        int32_t capability, multiprocessors;
    } files[] = {
        {"{\"device\": \"cuda\"}", PLAN_MACHINE_CUDA, true, 0, 0},
        {"{\"device\": \"cuda\", \"separate_memory\": true, \"compute_capability\": 9.0, "
         "\"multiprocessors\": 132}",
         PLAN_MACHINE_CUDA, true, 90, 132},
        {"{\"device\": \"cuda\", \"compute_capability\": 8.6}", PLAN_MACHINE_CUDA, true, 86, 0},
        {"{\"device\": \"cuda\", \"compute_capability\": 12}", PLAN_MACHINE_CUDA, true, 120, 0},
        {"{\"device\": \"cpu\"}", PLAN_MACHINE_CPU, false, 0, 0},
        {"{\"device\": \"cpu\", \"separate_memory\": true}", PLAN_MACHINE_CPU, true, 0, 0},
        {"{\"device\": null}", PLAN_MACHINE_CPU, false, 0, 0}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        plan_machine m = known;
        const char *path = scratch_text("device.json", files[i].text);
        assert_int_equal(plan_machine_load(path, &m, NULL), SIFR_OK);
        assert_int_equal(m.device, files[i].device);
        assert_int_equal(m.separate, files[i].separate);
        assert_int_equal(m.compute_capability, files[i].capability);
        assert_int_equal(m.multiprocessors, files[i].multiprocessors);
        path = scratch_text("some.json", "{\"room_bytes\": 5}");
        assert_int_equal(plan_machine_load(path, &m, NULL), SIFR_OK);
        assert_int_equal(m.device, files[i].device);
        assert_int_equal(m.separate, files[i].separate);
        assert_int_equal(m.compute_capability, files[i].capability);
    }
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
        {"{\"separate_memory\": 1}", "separate_memory"},
        {"{\"device\": \"tpu\"}", "device: \"tpu\" is neither \"cpu\" nor \"cuda\""},
        {"{\"device\": \"cuda\", \"separate_memory\": false}",
         "separate_memory: false: a GPU has memory of its own"},
        {"{\"compute_capability\": 7.5}",
         "compute_capability: 7.5: CUDA kernels need at least 8.0"},
        {"{\"compute_capability\": -9}", "compute_capability: -9 is no version such as 9.0"},
        {"{\"compute_capability\": 9.05}", "compute_capability: 9.05 is no version such as 9.0"},
        {"{\"compute_capability\": 100}", "compute_capability: 100 is no version such as 9.0"},
        {"{\"multiprocessors\": -1}", "multiprocessors: -1 must be from 0"},
        {"{\"room_bytes\": 5, \"copy_bytes_per_sec\": 9}",
         "\"copy_bytes_per_sec\" is no key of a machine; docs/schedule.md"}};
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(files), cmocka_unit_test(devices),
                                       cmocka_unit_test(wrong_files)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
