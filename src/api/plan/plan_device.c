#include "api/plan/plan_device.h"

#include <stdio.h>

#include "device/kinds.h"
#include "engine/check/device_choice.h"

static sifr_status refuse_fit(const char *what, sifr_error *error) {
    return base_fail(error, SIFR_USAGE,
                     "--fit: %s, and tiers are not chosen for that yet; without --fit a config is "
                     "planned for it",
                     what);
}

/* Of the kind that the file says, which must be the one that the config asks for. */
static sifr_status open_described(api_plan_report *r, const sifr_settings *options, bool fit,
                                  sifr_error *error) {
    plan_machine described = {0};
    const char *path = r->machine_file;
    int threads = (int)options->threads;
    char what[512];
    BASE_TRY(plan_machine_load(path, &described, error));
    bool gpu = described.device == PLAN_MACHINE_CUDA;
    if (options->device != SIFR_DEVICE_AUTO && gpu != (options->device == SIFR_DEVICE_CUDA))
        return base_fail(error, SIFR_USAGE,
                         "%s: describes a %s, and sifr.device is \"%s\"; give the file of another "
                         "machine, or leave sifr.device \"auto\"",
                         path, gpu ? "GPU" : "CPU", gpu ? "cpu" : "cuda");
    if (!described.separate) return device_open_cpu(threads, options->isa, &r->dev, error);
    snprintf(what, sizeof what, "%s says separate_memory", path);
    if (fit) return refuse_fit(what, error);
    if (!gpu) return device_open_separate(threads, options->isa, &r->dev, error);
    const device_description its_gpu = {.compute_capability = described.compute_capability,
                                        .multiprocessors = described.multiprocessors};
    return device_open_described(SIFR_DEVICE_CUDA, threads, &its_gpu, &r->dev, error);
}

/* As `sifr train` settles it (engine/check/device_choice.h). */
static sifr_status open_here(api_plan_report *r, const sifr_settings *options,
                             const api_plan_run *run, sifr_error *error) {
    const sifr_device kind = SIFR_DEVICE_CUDA; /* what "auto" may be */
    device_found found;
    sifr_error why = {.message = ""};
    bool automatic = options->device == SIFR_DEVICE_AUTO;
    sifr_status status =
        options->device == SIFR_DEVICE_CPU ? SIFR_USAGE : device_choose(kind, 0, &found, &why);
    if (status != SIFR_OK && options->device == kind)
        return base_fail(error, status,
                         "device cuda: %s; for a GPU that is not here, describe it: --machine "
                         "examples/h100.json",
                         why.message);
    if (status != SIFR_OK) {
        if (automatic && (device_build_of(kind).version != 0 || device_is_there(kind)))
            base_log(run->log, SIFR_LOG_INFO, "device auto: a plan for the CPU: %s", why.message);
        else if (automatic && r->options.device_memory > 0)
            base_log(run->log, SIFR_LOG_INFO,
                     "--device-memory: a plan of ranks on the CPU, which may take so much each; "
                     "for GPUs describe one: --machine examples/h100.json");
        return device_open_cpu((int)options->threads, options->isa, &r->dev, error);
    }
    if (run->fit) return refuse_fit("the run is for the GPU of this machine", error);
    device_place first = {.sharers = (run->here + found.count - 1) / found.count};
    r->machine.compute_capability = 10 * found.gpu.capability_major + found.gpu.capability_minor;
    r->machine.multiprocessors = found.gpu.multiprocessors;
    return device_open(kind, &first, (int)options->threads, options->isa, &r->dev, error);
}

sifr_status api_plan_open_device(api_plan_report *r, const sifr_settings *options,
                                 const api_plan_run *run, sifr_error *error) {
    if (r->machine_file) return open_described(r, options, run->fit, error);
    return open_here(r, options, run, error);
}

void api_plan_take_capacities(api_plan_report *r, const api_plan_run *run) {
    plan_machine *m = &r->machine;
    if (!device_is_hidden(r->dev) || r->machine_file) return;
    if (m->room_bytes == 0) m->room_bytes = device_capacity(r->dev);
    if (m->host_room_bytes == 0) m->host_room_bytes = (int64_t)engine_rank_capacity(run->here);
}
