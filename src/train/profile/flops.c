#include "train/profile/flops.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "plan/price/price.h"
#include "train/profile/flops_table.h"

static sifr_status prepare_file(const char *path, sifr_error *error) {
    char folder[BASE_PATH_LENGTH];
    sifr_error reason = {0};
    const char *slash = strrchr(path, '/');
    sifr_status status = SIFR_OK;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 0, path);
    if (*folder) status = base_make_directories(folder, &reason);
    if (status == SIFR_OK && !base_is_file(path)) status = base_write_file(path, "", 0, &reason);
    if (status == SIFR_OK) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "flops_profiler.output_file: %s; give a path in a folder that can be written",
                     reason.message);
}

sifr_status train_flops_open(train_flops *flops, const config_flops_profiler *config,
                             const plan_schedule *schedule, sifr_error *error) {
    *flops = (train_flops){.config = config, .schedule = schedule};
    flops->step = config->profile_step + 1;
    if (config->output_file && *config->output_file)
        BASE_TRY(prepare_file(config->output_file, error));
    return base_alloc(schedule->model->node_count, sizeof *flops->work, &flops->work, error);
}

void train_flops_close(train_flops *flops) {
    free(flops->work);
    *flops = (train_flops){0};
}

static double operations_of(const plan_schedule *s, const plan_instruction *instruction) {
    double operations = 0, bytes;
    if (instruction->call >= 0) plan_cost(s, &s->calls[instruction->call], &operations, &bytes);
    return operations;
}

static void add_forward(train_flops *f, const plan_instruction *instruction, double seconds) {
    double operations = operations_of(f->schedule, instruction);
    f->forward += seconds;
    f->forward_operations += operations;
    if (instruction->node < 0) return;
    f->work[instruction->node].operations += operations;
    f->work[instruction->node].seconds += seconds;
}

static void add(train_flops *f, const plan_instruction *instruction, double seconds) {
    switch ((plan_action)instruction->action) {
    case PLAN_FORWARD:
        add_forward(f, instruction, seconds);
        break;
    case PLAN_RECOMPUTE:
    case PLAN_BACKWARD:
        f->backward += seconds;
        f->backward_operations += operations_of(f->schedule, instruction);
        break;
    case PLAN_SQUARES:
    case PLAN_NORM:
    case PLAN_UPDATE:
        f->update += seconds;
        break;
    default:
        f->other += seconds;
    }
}

static void say_lines(const train_host *host, char *text) {
    for (char *line = text, *end; *line; line = end + 1) {
        end = line + strcspn(line, "\n");
        bool last = !*end;
        *end = '\0';
        train_say(host, "%s", line);
        if (last) break;
    }
}

/* The run goes on if the file cannot be written. */
static void put(const train_flops *f, char *text, size_t size, const train_host *host) {
    sifr_error reason = {0};
    const char *path = f->config->output_file;
    if (!path || !*path)
        say_lines(host, text);
    else if (base_write_file(path, text, size, &reason) == SIFR_OK)
        train_say(host, "flops_profiler: step %lld is in %s", (long long)f->step, path);
    else
        base_log(host->log, SIFR_LOG_WARNING, "no flops profile is written: %s", reason.message);
}

sifr_status train_flops_step(train_flops *f, int64_t step, const float *seconds,
                             double step_seconds, const train_host *host, sifr_error *error) {
    size_t size;
    if (!f->config || step != f->step) return SIFR_OK;
    for (size_t i = 0; i < f->schedule->instruction_count; i++)
        add(f, &f->schedule->instructions[i], (double)seconds[i]);
    f->done = true;
    char *text = train_flops_table(f, step_seconds, &size);
    if (!text) return base_fail_alloc(error, 4096);
    put(f, text, size, host);
    free(text);
    return SIFR_OK;
}
