#include "train/profile/unit_times.h"

#include <stdlib.h>

#include "base/heap.h"

enum { FORWARD, AGAIN, BACKWARD, COLUMNS };

sifr_status train_unit_times_open(train_unit_times *times, const plan_schedule *schedule,
                                  sifr_error *error) {
    size_t count = schedule->model->unit_count * COLUMNS;
    *times = (train_unit_times){.schedule = schedule};
    BASE_TRY(base_alloc(count, sizeof *times->seconds, &times->seconds, error));
    return base_alloc(count, sizeof *times->spread, &times->spread, error);
}

void train_unit_times_close(train_unit_times *times) {
    free(times->seconds);
    free(times->spread);
    *times = (train_unit_times){0};
}

static int column_of(uint8_t action) {
    switch ((plan_action)action) {
    case PLAN_FORWARD:
        return FORWARD;
    case PLAN_RECOMPUTE:
        return AGAIN;
    case PLAN_BACKWARD:
        return BACKWARD;
    default:
        return COLUMNS;
    }
}

void train_unit_times_add(train_unit_times *times, const float *seconds) {
    const plan_schedule *s = times->schedule;
    if (!s) return;
    for (size_t i = 0; i < s->instruction_count; i++) {
        int column = column_of(s->instructions[i].action);
        if (column == COLUMNS) continue;
        times->seconds[s->instructions[i].unit * COLUMNS + column] += (double)seconds[i];
    }
    times->steps++;
}

static void say_units(const train_unit_times *times, int32_t ranks, const train_host *host) {
    const sifr_model *model = times->schedule->model;
    double scale = 1e3 / (double)times->steps;
    train_say(host, "  %-24s %12s %12s %12s", ranks > 1 ? "ms a step, median rank" : "ms a step",
              "forward", "recompute", "backward");
    for (size_t u = 0; u < model->unit_count; u++) {
        const train_spread *of = &times->spread[u * COLUMNS];
        train_say(host, "  %-24s %12.3f %12.3f %12.3f", model->units[u].name,
                  scale * of[FORWARD].median, scale * of[AGAIN].median,
                  scale * of[BACKWARD].median);
    }
}

sifr_status train_unit_times_say(const train_unit_times *times, comm_group *group,
                                 const train_host *host, sifr_error *error) {
    if (!times->schedule || times->steps == 0) return SIFR_OK;
    size_t count = times->schedule->model->unit_count * COLUMNS;
    BASE_TRY(train_spread_over(group, times->seconds, count, times->spread, error));
    say_units(times, comm_size(group), host);
    return SIFR_OK;
}
