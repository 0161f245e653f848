/* The option parser: what each kind reads, lists, operands, and what is refused.
 * in test_asan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/options.h"

typedef struct values {
    bool json, json_given, steps_given;
    const char *output;
    int64_t steps, memory;
    double rate;
    cli_list data, operands;
    int code;
    char message[512]; /* what went to standard error */
} values;

/* Parses the words of `line` (no quoting) into `v`; `operands`: whether the command takes some. */
static bool parse(values *v, bool operands, const char *line) {
    static char words[512];
    char *argv[40] = {"test"};
    int argc = 1;
    const cli_usage usage = {"test", operands ? "PATH" : NULL, "Tests.", "sifr test"};
    *v = (values){.steps = -1, .memory = -1, .rate = -1};
    const cli_option options[] = {
        {"json", CLI_FLAG, NULL, "as JSON", &v->json, &v->json_given, false},
        {"output", CLI_TEXT, "DIR", "where to", &v->output, NULL, true},
        {"max-steps", CLI_COUNT, "N", "how many", &v->steps, &v->steps_given, false},
        {"memory", CLI_BYTES, "SIZE", "how much", &v->memory, NULL, false},
        {"rate", CLI_NUMBER, "X", "how fast", &v->rate, NULL, false},
        {"data", CLI_LIST, "PATH", "what from", &v->data, NULL, false},
    };
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;

    FILE *caught = tmpfile();
    assert_non_null(caught);
    fflush(stderr);
    int saved = dup(2);
    dup2(fileno(caught), 2);
    bool go_on = cli_parse(&usage, options, sizeof options / sizeof options[0], argc, argv,
                           operands ? &v->operands : NULL, &v->code);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    rewind(caught);
    size_t length = fread(v->message, 1, sizeof v->message - 1, caught);
    v->message[length] = '\0';
    fclose(caught);
    return go_on;
}

static void free_values(values *v) {
    cli_list_free(&v->data);
    cli_list_free(&v->operands);
}

static void reads_each_kind(void **state) {
    (void)state;
    values v;
    assert_true(parse(&v, false,
                      "--json --output=out --max-steps 4k --memory 1.5GiB --rate 3e-4 --data a"));
    assert_true(v.json);
    assert_true(v.json_given);
    assert_true(v.steps_given);
    assert_string_equal(v.output, "out");
    assert_int_equal(v.steps, 4000);
    assert_int_equal(v.memory, 1610612736);
    assert_true(v.rate == 3e-4);
    assert_int_equal(v.data.count, 1);
    assert_string_equal(v.message, "");
    free_values(&v);
}

static void leaves_defaults(void **state) {
    (void)state;
    values v;
    assert_true(parse(&v, false, "--output out"));
    assert_false(v.json || v.json_given || v.steps_given);
    assert_int_equal(v.steps, -1);
    assert_int_equal(v.memory, -1);
    assert_true(v.rate == -1);
    assert_int_equal(v.data.count, 0);
    free_values(&v);
}

static void gathers_lists(void **state) {
    (void)state;
    values v;
    assert_true(parse(&v, true, "x --data a b c --output out y --data d --json e -- --z"));
    assert_int_equal(v.data.count, 4);
    assert_string_equal(v.data.items[2], "c");
    assert_string_equal(v.data.items[3], "d");
    assert_int_equal(v.operands.count, 4); /* a flag ends the list: x, y, e, --z */
    assert_string_equal(v.operands.items[2], "e");
    free_values(&v);
}

static void closes_lists(void **state) {
    (void)state;
    values v;
    assert_true(parse(&v, true, "x --data a b --output out y -- --z"));
    assert_int_equal(v.data.count, 2);
    assert_int_equal(v.operands.count, 3);
    assert_string_equal(v.operands.items[0], "x");
    assert_string_equal(v.operands.items[1], "y");
    assert_string_equal(v.operands.items[2], "--z");
    free_values(&v);
}

static void refuses(void **state) {
    (void)state;
    static const struct {
        const char *line, *message;
    } bad[] = {
        {"--output", "sifr test: --output needs a value; see `sifr test --help`\n"},
        {"--json", "sifr test: --output DIR is needed; see `sifr test --help`\n"},
        {"--output o --max_step 3", "sifr test: unknown option --max_step: did you mean "
                                    "--max-steps?\n"},
        {"--output o --zzzzzzzzzz", "sifr test: unknown option --zzzzzzzzzz; see `sifr test "
                                    "--help`\n"},
        {"--output o \x1b[2J", "sifr test: ` [2J` belongs to no option; see `sifr test --help`\n"},
        {"--output o --\x1b[2J", "sifr test: unknown option -- [2J; see `sifr test --help`\n"},
        /* The first letters of a name are not the name; other programs' names are known. */
        {"--output o --rat 3", "sifr test: unknown option --rat: did you mean --rate?\n"},
        {"--output o --steps=3", "sifr test: unknown option --steps: did you mean --max-steps?\n"},
        {"--output-dir o", "sifr test: unknown option --output-dir: did you mean --output?\n"},
        {"--output o --dataset_name a",
         "sifr test: unknown option --dataset_name: did you mean --data?\n"},
        {"--output o --json=1", "sifr test: --json takes no value; write it alone\n"},
        {"--output o --m 1",
         "sifr test: --m: several options begin with this; write the whole name; see "
         "`sifr test --help`\n"},
        {"--output o word", "sifr test: `word` belongs to no option; see `sifr test --help`\n"},
        {"--output o -- word", "sifr test: `word` belongs to no option; see `sifr test --help`\n"},
        {"--output o -x", "sifr test: unknown option -x; see `sifr test --help`\n"},
        {"--output o --data a -xy", "sifr test: unknown option -x; see `sifr test --help`\n"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        values v;
        assert_false(parse(&v, false, bad[i].line));
        assert_int_equal(v.code, 2);
        assert_string_equal(v.message, bad[i].message);
    }
    static const char *const values_of[] = {"--max-steps 4x", "--max-steps -1", "--memory 3XiB",
                                            "--rate fast", "--rate nan"};
    for (size_t i = 0; i < sizeof values_of / sizeof values_of[0]; i++) {
        values v;
        char line[64];
        snprintf(line, sizeof line, "--output o %s", values_of[i]);
        assert_false(parse(&v, false, line));
        assert_int_equal(v.code, 2);
        assert_non_null(strstr(v.message, "sifr test: --"));
        assert_int_equal(strchr(v.message, '\n') - v.message, strlen(v.message) - 1);
    }
}

/* Ranks share standard error: a message in two writes is cut by another rank's. */
static void fails_in_one_write(void **state) {
    (void)state;
    int ends[2]; /* a packet is what one write wrote */
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    char got[256];
    fflush(stderr);
    int saved = dup(2);
    dup2(ends[0], 2);
    int code = cli_fail_with("test", SIFR_USAGE, "rank %d: %s", 3, "has ended");
    dup2(saved, 2);
    close(saved);
    ssize_t length = recv(ends[1], got, sizeof got, MSG_DONTWAIT);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(code, SIFR_USAGE);
    assert_in_range(length, 1, sizeof got - 1);
    got[length] = '\0';
    assert_string_equal(got, "sifr test: rank 3: has ended\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_each_kind), cmocka_unit_test(leaves_defaults),
        cmocka_unit_test(gathers_lists),   cmocka_unit_test(closes_lists),
        cmocka_unit_test(refuses),         cmocka_unit_test(fails_in_one_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
