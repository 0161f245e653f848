/* docs/monitoring.md lists the metrics of all runs, as the list has them: no more, no fewer, with
 * unit and records. The pages of objectives have what these measure beside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "train/objective/objectives.h"
#include "train/report/metric_list.h"

static char *read_page(const char *name) {
    char path[4096], *text;
    size_t size;
    snprintf(path, sizeof path, "%s/docs/%s.md", getenv("SOURCE"), name);
    assert_int_equal(base_read_file(path, 1 << 20, &text, &size, NULL), SIFR_OK);
    return text;
}

/* The rows behind the head, up to an empty line. */
static const char *find_rows(const char *page) {
    static const char head[] = "| key | unit | in records of | value |\n|---|---|---|---|\n";
    const char *at = strstr(page, head);
    assert_non_null(at);
    return at + strlen(head);
}

static void the_page_has_the_list(void **state) {
    (void)state;
    char *page = read_page("monitoring");
    const char *row = find_rows(page);
    for (int id = 0; id < TRAIN_METRICS; id++) {
        const train_metric *m = train_metric_at((train_metric_id)id);
        char begin[256];
        const char *when = id == TRAIN_EPOCH                  ? "steps, evaluations"
                           : m->when == TRAIN_EACH_EVALUATION ? "evaluations"
                                                              : "steps";
        snprintf(begin, sizeof begin, "| `%s` | %s%s| %s | ", m->key, m->unit, *m->unit ? " " : "",
                 when);
        if (strncmp(row, begin, strlen(begin)) != 0)
            fail_msg("the row should begin with \"%s\": %.80s", begin, row);
        row = strchr(row, '\n') + 1;
    }
    assert_int_equal(*row, '\n');
    free(page);
}

#define ROW(row) &(row),
static const train_objective *const objectives[] = {TRAIN_OBJECTIVES(ROW)};

static void pages_have_what_objectives_measure(void **state) {
    (void)state;
    char *classes = read_page("classification"), *pairs = read_page("preferences");
    int names = 0;
    for (size_t i = 0; i < sizeof objectives / sizeof *objectives; i++)
        for (int k = 0; k < TRAIN_MEASURES && objectives[i]->measures[k]; k++, names++)
            if (!strstr(classes, objectives[i]->measures[k]) &&
                !strstr(pairs, objectives[i]->measures[k]))
                fail_msg("no page has %s", objectives[i]->measures[k]);
    assert_true(names > 10);
    free(classes);
    free(pairs);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_page_has_the_list),
                                       cmocka_unit_test(pages_have_what_objectives_measure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
