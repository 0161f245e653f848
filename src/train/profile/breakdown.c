#include "train/profile/breakdown.h"

#include <stdio.h>

#include "train/profile/spread.h"

static int class_of(const plan_schedule *schedule, const plan_instruction *instruction) {
    int kernel = DEVICE_KERNELS;
    if (instruction->call >= 0) kernel = (int)schedule->calls[instruction->call].kernel;
    return instruction->action * (DEVICE_KERNELS + 1) + kernel;
}

void train_breakdown_add(train_breakdown *breakdown, const plan_schedule *schedule,
                         const float *seconds, const float *planned, double step_seconds) {
    for (size_t i = 0; i < schedule->instruction_count; i++) {
        int class = class_of(schedule, &schedule->instructions[i]);
        breakdown->measured[class] += (double)seconds[i];
        if (planned) breakdown->planned[class] += (double)planned[i];
        breakdown->calls[class]++;
    }
    breakdown->steps++;
    breakdown->step_seconds += step_seconds;
}

static const char *kernel_name(int class) {
    int kernel = class % (DEVICE_KERNELS + 1);
    return kernel == DEVICE_KERNELS ? "" : device_kernel_name((device_kernel)kernel);
}

/* A line of the table: seconds a step over the ranks, and the planned seconds. */
typedef struct breakdown_row {
    const char *action, *kernel;
    double calls, planned;
    train_spread time;
} breakdown_row;

static void say_row(const train_host *host, const breakdown_row *row, int32_t ranks, double step) {
    char planned[32] = "";
    if (row->planned > 0) snprintf(planned, sizeof planned, "%12.3f", 1e3 * row->planned);
    double share = 100 * row->time.median / step;
    if (ranks == 1)
        train_say(host, "  %-9s %-26s %7.0f %12.3f %6.1f%% %12s", row->action, row->kernel,
                  row->calls, 1e3 * row->time.most, share, planned);
    else
        train_say(host, "  %-14s %-26s %7.0f %11.3f %11.3f %11.3f  rank %-5d %5.1f%% %12s",
                  row->action, row->kernel, row->calls, 1e3 * row->time.least,
                  1e3 * row->time.median, 1e3 * row->time.most, (int)row->time.most_rank, share,
                  planned);
}

static void say_head(const train_host *host, int32_t ranks) {
    if (ranks == 1)
        train_say(host, "  %-9s %-26s %7s %12s %7s %12s", "time", "", "calls", "ms a step", "share",
                  "planned ms");
    else
        train_say(host, "  %-14s %-26s %7s %11s %11s %11s  %-10s %6s %12s", "ms a step", "",
                  "calls", "least", "median", "most", "slowest", "share", "planned ms");
}

/* Indices in the ranks' figures after those of the classes. */
enum { BETWEEN = TRAIN_BREAKDOWN_CLASSES, STEP, FIGURES };

static void say_table(const train_breakdown *b, const train_spread *time, int32_t ranks,
                      const train_host *host) {
    double steps = (double)b->steps, step = time[STEP].median, planned = 0;
    bool said[TRAIN_BREAKDOWN_CLASSES] = {0};
    say_head(host, ranks);
    for (;;) {
        int best = -1;
        for (int c = 0; c < TRAIN_BREAKDOWN_CLASSES; c++) {
            if (b->calls[c] == 0 || said[c]) continue;
            if (best < 0 || time[c].median > time[best].median) best = c;
        }
        if (best < 0) break;
        said[best] = true;
        planned += b->planned[best] / steps;
        breakdown_row row = {plan_action_name((plan_action)(best / (DEVICE_KERNELS + 1))),
                             kernel_name(best), (double)b->calls[best] / steps,
                             b->planned[best] / steps, time[best]};
        say_row(host, &row, ranks, step);
    }
    say_row(host, &(breakdown_row){"between", "instructions", 1, 0, time[BETWEEN]}, ranks, step);
    say_row(host, &(breakdown_row){"step", "", 1, planned, time[STEP]}, ranks, step);
}

sifr_status train_breakdown_say(const train_breakdown *b, comm_group *group, const train_host *host,
                                sifr_error *error) {
    double figures[FIGURES] = {0}, steps = (double)b->steps;
    train_spread time[FIGURES];
    if (b->steps == 0 || b->step_seconds <= 0) return SIFR_OK;
    figures[STEP] = figures[BETWEEN] = b->step_seconds / steps;
    for (int c = 0; c < TRAIN_BREAKDOWN_CLASSES; c++) {
        figures[c] = b->measured[c] / steps;
        figures[BETWEEN] -= figures[c];
    }
    BASE_TRY(train_spread_over(group, figures, FIGURES, time, error));
    say_table(b, time, comm_size(group), host);
    return SIFR_OK;
}
