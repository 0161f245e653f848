/* Hostfiles and their filters, as DeepSpeed's launcher has them. */
#include "cli/launch/hostfile.h"

#include "support/scratch.h"

static sifr_error error;
static cli_hosts hosts;

static sifr_status read_text(const char *text) {
    cli_hosts_free(&hosts);
    return cli_hosts_read(scratch_text("hostfile", text), &hosts, &error);
}

static void assert_list(const char *expected) {
    char *list;
    assert_int_equal(cli_hosts_list(&hosts, &list, &error), SIFR_OK);
    assert_string_equal(list, expected);
    free(list);
}

static void test_lines(void **state) {
    (void)state;
    assert_int_equal(read_text("# the cluster\n\nworker-1 slots=4\r\n  10.0.0.2\tslots=2 # old\n"
                               "\t# indented\nworker-3.site slots=1"),
                     SIFR_OK);
    assert_int_equal(hosts.count, 3);
    assert_int_equal(cli_hosts_slots(&hosts), 7);
    assert_list("worker-1:4,10.0.0.2:2,worker-3.site:1");
    cli_hosts_keep(&hosts, 5);
    assert_int_equal(cli_hosts_slots(&hosts), 5);
    assert_list("worker-1:4,10.0.0.2:1");
}

static void test_wrong_lines(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a slots=2\nb\n", "line 2: 'b' is not HOST slots=N"},
        {"a slots=2\n\n#\nb slots=x\n", "line 4: 'b slots=x'"},
        {"a slots=\n", "line 1: 'a slots='"},
        {"a slots=-1\n", "line 1: 'a slots=-1'"},
        {"a slots=2 max_slots=4\n", "line 1: 'a slots=2 max_slots=4'"},
        {"a slot=2\n", "line 1: 'a slot=2'"},
        {"slots=2\n", "line 1: 'slots=2'"},
        {"a;b slots=2\n", "line 1: 'a;b slots=2'"},
        {"-n slots=2\n", "line 1: '-n slots=2'"},
        {"a slots=0\n", "line 1: slots must be 1 to 4096"},
        {"a slots=4294967297\n", "line 1: slots must be 1 to 4096"},
        {"a slots=1\nb slots=1\na slots=2\n", "line 3: the host a is there twice"},
        {"a slots=4096\nb slots=1\n", "more than 4096 slots in all"},
        {"# nobody\n", "no host in it"},
        {"", "no host in it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(read_text(cases[i].text), SIFR_USAGE);
        assert_message(&error, cases[i].message);
        assert_int_equal(hosts.count, 0);
    }
    static const char zero[] = "a\0b slots=1\n";
    assert_int_equal(
        cli_hosts_read(scratch_write("hostfile", zero, sizeof zero - 1), &hosts, &error),
        SIFR_USAGE);
    assert_message(&error, "line 1: ");
    assert_int_not_equal(cli_hosts_read(scratch_path("absent"), &hosts, &error), SIFR_OK);
    assert_message(&error, "absent");
}

static void test_filters(void **state) {
    (void)state;
    static const struct {
        const char *include, *exclude, *list;
    } cases[] = {
        {NULL, NULL, "a:4,b:3,c:1"},      {"b@a:0,2", NULL, "a:2,b:3"},
        {"b:1@b:1,2", NULL, "b:2"},       {"c", NULL, "c:1"},
        {NULL, "b", "a:4,c:1"},           {NULL, "a:0,1@c:0@b:2", "a:2,b:2"},
        {NULL, "a:0@a:0", "a:3,b:3,c:1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(read_text("a slots=4\nb slots=3\nc slots=1\n"), SIFR_OK);
        assert_int_equal(cli_hosts_filter(&hosts, cases[i].include, cases[i].exclude, &error),
                         SIFR_OK);
        assert_list(cases[i].list);
    }
}

static void test_wrong_filters(void **state) {
    (void)state;
    static const struct {
        const char *include, *exclude, *message;
    } cases[] = {
        {"a", "b", "--include and --exclude: give one of them"},
        {"d", NULL, "--include: 'd' is no host of the hostfile"},
        {"a@", NULL, "--include: '' is no host"},
        {"", NULL, "--include: '' is no host"},
        {"a:4", NULL, "--include: a has no slot 4: it has slots 0 to 3"},
        {"a:", NULL, "'' is no slot number"},
        {"a:0,,1", NULL, "'' is no slot number"},
        {"a:0-2", NULL, "'0-2' is no slot number"},
        {NULL, "c:-1", "--exclude: 'c:-1': '-1' is no slot number"},
        {NULL, "a@b@c", "--exclude: no slot is left"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(read_text("a slots=4\nb slots=3\nc slots=1\n"), SIFR_OK);
        assert_int_equal(cli_hosts_filter(&hosts, cases[i].include, cases[i].exclude, &error),
                         SIFR_USAGE);
        assert_message(&error, cases[i].message);
    }
}

static void test_here(void **state) {
    (void)state;
    char own[128] = "", text[512];
    assert_int_equal(gethostname(own, sizeof own - 1), 0);
    snprintf(text, sizeof text, "localhost slots=2\nelsewhere.invalid slots=2\n%s slots=1\n", own);
    assert_int_equal(read_text(text), SIFR_OK);
    assert_false(cli_hosts_are_here(&hosts));
    assert_int_equal(cli_hosts_filter(&hosts, NULL, "elsewhere.invalid", &error), SIFR_OK);
    assert_true(cli_hosts_are_here(&hosts));
}

static int teardown(void **state) {
    cli_hosts_free(&hosts);
    return scratch_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),   cmocka_unit_test(test_wrong_lines),
        cmocka_unit_test(test_filters), cmocka_unit_test(test_wrong_filters),
        cmocka_unit_test(test_here),
    };
    return cmocka_run_group_tests(tests, scratch_setup, teardown);
}
