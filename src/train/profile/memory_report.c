#include "train/profile/memory_report.h"

#include <stdio.h>

#include "base/text.h"
#include "train/profile/spread.h"

/* Lines after those of the plan's classes. */
enum { GAPS = PLAN_CLASSES, TRANSFERS, PROFILING, PLANNED, MEASURED, LINES };

static const char *line_name(int line) {
    static const char *const names[] = {"gaps", "transfer buffers", "profiling", "planned",
                                        "measured"};
    return line < PLAN_CLASSES ? plan_class_name((plan_class)line) : names[line - PLAN_CLASSES];
}

static void say_line(const train_host *host, int line, const train_spread *bytes, int32_t ranks) {
    char least[32], median[32], most[32];
    base_format_bytes((uint64_t)bytes->most, most);
    if (ranks == 1) {
        train_say(host, "  %-18s %11s", line_name(line), most);
        return;
    }
    train_say(host, "  %-18s %11s %11s %11s  rank %d", line_name(line),
              base_format_bytes((uint64_t)bytes->least, least),
              base_format_bytes((uint64_t)bytes->median, median), most, (int)bytes->most_rank);
}

sifr_status train_memory_say(const sifr_engine *engine, const train_memory_now *now,
                             const char *when, const train_host *host, sifr_error *error) {
    const plan_schedule *s = engine_schedule(engine);
    int32_t ranks = comm_size(engine_group(engine));
    double bytes[LINES] = {0}, classes = 0;
    train_spread spread[LINES];
    char head[96];
    for (int c = 0; c < PLAN_CLASSES; c++) {
        bytes[c] = (double)s->peak_bytes[c];
        classes += bytes[c];
    }
    bytes[GAPS] = (double)s->total_bytes - classes;
    engine_group_of list[ENGINE_GROUPS];
    int groups = engine_groups_list(engine_groups_of(engine), list);
    for (int i = 0; i < groups; i++) bytes[TRANSFERS] += (double)comm_buffer_bytes(list[i].group);
    bytes[PROFILING] = (double)now->profiling;
    bytes[PLANNED] = (double)s->total_bytes + bytes[TRANSFERS] + bytes[PROFILING];
    bytes[MEASURED] = (double)now->measured;
    BASE_TRY(train_spread_over(engine_group(engine), bytes, LINES, spread, error));
    snprintf(head, sizeof head, "memory %s", when);
    if (ranks == 1)
        train_say(host, "  %s", head);
    else
        train_say(host, "  %-18s %11s %11s %11s", head, "least", "median", "most");
    for (int line = 0; line < LINES; line++) {
        if (spread[line].most > 0) say_line(host, line, &spread[line], ranks);
    }
    return SIFR_OK;
}
