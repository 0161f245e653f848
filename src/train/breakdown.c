#include "train/breakdown.h"

#include <stdio.h>

static int class_of(const plan_schedule *schedule, const plan_instruction *instruction) {
    int kernel = DEVICE_KERNELS;
    if (instruction->call >= 0) kernel = (int)schedule->calls[instruction->call].kernel;
    return instruction->action * (DEVICE_KERNELS + 1) + kernel;
}

void train_breakdown_add(train_breakdown *breakdown, const plan_schedule *schedule,
                         const float *seconds, double step_seconds, const plan_machine *machine) {
    for (size_t i = 0; i < schedule->instruction_count; i++) {
        int class = class_of(schedule, &schedule->instructions[i]);
        breakdown->measured[class] += (double)seconds[i];
        if (machine) breakdown->planned[class] += plan_price(schedule, i, machine);
        breakdown->calls[class]++;
    }
    breakdown->steps++;
    breakdown->step_seconds += step_seconds;
}

static const char *kernel_name(int class) {
    int kernel = class % (DEVICE_KERNELS + 1);
    return kernel == DEVICE_KERNELS ? "" : device_kernel_name((device_kernel)kernel);
}

static void say_row(const train_host *host, const char *action, const char *kernel, double calls,
                    double measured, double planned, double step) {
    char text[32] = "";
    if (planned > 0) snprintf(text, sizeof text, "%12.3f", 1e3 * planned);
    train_say(host, "  %-9s %-26s %7.0f %12.3f %6.1f%% %12s", action, kernel, calls, 1e3 * measured,
              100 * measured / step, text);
}

void train_breakdown_say(const train_breakdown *breakdown, const train_host *host) {
    if (breakdown->steps == 0 || breakdown->step_seconds <= 0) return;
    double steps = (double)breakdown->steps, step = breakdown->step_seconds / steps;
    double measured = 0, planned = 0;
    bool said[TRAIN_BREAKDOWN_CLASSES] = {0};
    train_say(host, "  %-9s %-26s %7s %12s %7s %12s", "time", "", "calls", "ms a step", "share",
              "planned ms");
    for (;;) {
        int best = -1;
        for (int c = 0; c < TRAIN_BREAKDOWN_CLASSES; c++) {
            if (breakdown->calls[c] == 0 || said[c]) continue;
            if (best < 0 || breakdown->measured[c] > breakdown->measured[best]) best = c;
        }
        if (best < 0) break;
        said[best] = true;
        measured += breakdown->measured[best] / steps;
        planned += breakdown->planned[best] / steps;
        say_row(host, plan_action_name((plan_action)(best / (DEVICE_KERNELS + 1))),
                kernel_name(best), (double)breakdown->calls[best] / steps,
                breakdown->measured[best] / steps, breakdown->planned[best] / steps, step);
    }
    say_row(host, "between", "instructions", 1, step - measured, 0, step);
    say_row(host, "step", "", 1, step, planned, step);
}
