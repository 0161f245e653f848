#include "api/plan/plan_make.h"

#include <stdio.h>
#include <string.h>

#include "api/plan/plan_device.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/process.h"
#include "base/system.h"
#include "base/text.h"
#include "base/topology.h"
#include "comm/launcher.h"
#include "model/released.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/search/memo.h"
#include "train/objective/objectives.h"
#include "train/prepare/run_settings.h"
#include "train/prepare/run_task.h"

static sifr_status load_machine(const api_plan_report *r, plan_machine *machine,
                                sifr_error *error) {
    if (!r->machine_file) return plan_machine_load_stored(machine, error);
    return plan_machine_load(r->machine_file, machine, error);
}

/* What a rank has of this machine, unless the file or a flag says otherwise. */
static sifr_status describe_machine(api_plan_report *r, sifr_error *error) {
    BASE_TRY(load_machine(r, &r->machine, error));
    bool known = plan_machine_is_known(&r->machine);
    bool gpu = !r->machine_file && device_is_hidden(r->dev); /* stored figures are a CPU's */
    if (!known && r->machine_file && r->machine.device == PLAN_MACHINE_CUDA)
        return base_fail(error, SIFR_USAGE,
                         "%s: a GPU that is not here cannot be measured; give "
                         "fp32_operations_per_s, bf16_operations_per_s and memory_bytes_per_s",
                         r->machine_file);
    r->measured = !known || gpu || !r->machine_file; /* stored ones were, too */
    if (!known || gpu) {
        BASE_TRY(plan_machine_measure(r->dev, NULL, DEVICE_MEASURE_BYTES, &r->machine, error));
        BASE_TRY(load_machine(r, &r->machine, error));
    }
    r->order_machine = plan_machine_unknown();
    plan_machine_typical(r->dev, &r->order_machine);
    BASE_TRY(load_machine(r, &r->order_machine, error));
    if (r->options.ranks_per_host) r->machine.ranks_per_host = (int32_t)r->options.ranks_per_host;
    int64_t here = r->machine.ranks_per_host ? r->machine.ranks_per_host : r->options.ranks;
    r->order_machine.ranks_per_host = r->machine.ranks_per_host;
    if (!r->machine_file)
        r->ranks_per_node =
            base_topology_ranks_per_node((int32_t)base_min_i64(here, r->options.ranks));
    return SIFR_OK;
}

static int processors(void) {
    base_system system;
    base_system_read(&system);
    return system.cpus;
}

/* A disk that is given as a size is nobody else's. */
static sifr_status find_disks(api_plan_report *r, sifr_error *error) {
    BASE_TRY(train_disk_find(&r->config, r->model, &r->disk, error));
    if (!r->nvme_bytes) return SIFR_OK;
    r->disk.swap = NULL;
    r->disk.swap_bytes = r->nvme_bytes;
    r->disk.same = false;
    return SIFR_OK;
}

/* The program as it stands with a plan, before the block is taken. That plan serves on, where it
 * does not depend on what room there is. */
static sifr_status find_limits(api_plan_report *r, const plan_settings *settings,
                               sifr_error *error) {
    sifr_status status = plan_lower(r->model, r->dev, settings, &r->schedule, error);
    bool searched = status == SIFR_USAGE && r->options.fit; /* others may be possible */
    if (status != SIFR_OK && !searched) return status;
    int64_t taken = (int64_t)base_process_memory();
    int64_t of_mpi = r->options.ranks > 1 ? comm_mpi_bytes(comm_mpi_chosen()) : 0;
    r->limits = (api_plan_limits){.device_bytes = r->options.device_memory,
                                  .host_bytes = r->options.host_memory,
                                  .taken = taken,
                                  .baseline = taken + of_mpi};
    if (settings->step.recompute == SIFR_RECOMPUTE_AUTO || r->options.fit) {
        plan_free(r->schedule);
        r->schedule = NULL;
    }
    api_plan_limits_find(&r->limits, r->options.ranks, &r->machine);
    BASE_TRY(find_disks(r, error));
    r->search = train_search(&r->config, r->model, r->dev, &r->machine, r->limits.room_bytes,
                             &r->disk, (int32_t)r->limits.ranks_here);
    r->search.order_machine = &r->order_machine;
    r->search.threads = processors();
    if (r->limits.is_shared) r->search.spare_bytes = plan_spare(r->limits.room_bytes);
    r->search.host_room_bytes = r->limits.host_room_bytes;
    r->search.any_stages |= r->any_stages;
    r->search.any_tensors |= r->any_tensors;
    r->search.any_contexts |= r->any_contexts;
    return SIFR_OK;
}

static void add_reason(sifr_error *all, const sifr_error *reason) {
    size_t used = strlen(all->message);
    all->status = SIFR_NO_MEMORY;
    snprintf(all->message + used, sizeof all->message - used, "%s%s", used ? "; " : "",
             reason->message);
}

/* Why a rank may take less than what was given; of two memories the reason names the one. */
static void add_limits(api_plan_report *r) {
    size_t used = strlen(r->too_large.message);
    if (!r->machine.separate && (r->limits.device_bytes > 0 || r->limits.host_bytes > 0))
        snprintf(r->too_large.message + used, sizeof r->too_large.message - used, " (%s)",
                 r->limits.text);
}

/* All that is short of what the step takes: memory, the disk for state, that for checkpoints. */
static bool find_short(api_plan_report *r) {
    const plan_search *search = &r->search;
    int64_t nvme = r->own.nvme_bytes;
    char need[32], text[API_PLAN_DISK_LENGTH];
    sifr_error reason = {0};
    r->too_large = (sifr_error){0};
    if (engine_fits(r->schedule, &r->machine, &reason) != SIFR_OK) {
        add_reason(&r->too_large, &reason);
        add_limits(r);
    } else if (r->own.stage_bytes[1] > search->room_bytes) {
        snprintf(reason.message, sizeof reason.message,
                 "memory: a rank of stage %d takes %s, and may take %s", (int)r->own.fullest,
                 base_format_bytes((uint64_t)r->own.stage_bytes[1], need),
                 base_format_bytes((uint64_t)search->room_bytes, text));
        add_reason(&r->too_large, &reason);
    }
    if (search->disk_bytes > 0 && nvme > search->disk_bytes) {
        snprintf(reason.message, sizeof reason.message, "disk: a rank puts %s there, and may %s",
                 base_format_bytes((uint64_t)nvme, need), api_plan_disk(r, text));
        add_reason(&r->too_large, &reason);
    }
    if (train_disk_check(&r->disk, &search->output, r->model, &r->own.settings, nvme, &reason) !=
        SIFR_OK)
        add_reason(&r->too_large, &reason);
    return r->too_large.status == SIFR_OK;
}

/* The config's own step. */
static sifr_status plan_own(api_plan_report *r, plan_settings *settings, sifr_error *error) {
    if (r->config.step.step_order == SIFR_STEP_AUTO) {
        plan_machine by = r->order_machine;
        by.room_bytes = r->machine.room_bytes;
        by.host_room_bytes = r->machine.host_room_bytes;
        BASE_TRY(
            engine_choose_order(r->model, r->dev, settings, &by, &r->choice, &r->schedule, error));
        settings->step.step_order = r->choice.order;
    }
    if (!r->schedule) BASE_TRY(plan_lower(r->model, r->dev, settings, &r->schedule, error));
    BASE_TRY(plan_assess(&r->search, r->schedule, &r->own, error));
    r->own.fits = find_short(r);
    plan_memo_keep(r->memo, &r->own, true);
    return SIFR_OK;
}

static sifr_status open_plan(api_plan_report *r, sifr_error *error) {
    const sifr_plan_options *o = &r->options;
    sifr_settings options = train_step_settings(&r->config, r->length);
    int64_t ranks = o->ranks, here = o->ranks_per_host;
    if (here == 0 || here > ranks) here = ranks;
    if (options.threads == 0) options.threads = base_topology_threads((int)here);
    r->machine = plan_machine_unknown();
    api_plan_run run = {
        .ranks = (int32_t)ranks, .here = (int32_t)here, .fit = o->fit, .log = r->log};
    BASE_TRY(api_plan_open_device(r, &options, &run, error));
    BASE_TRY(engine_check_settings(&options, (int32_t)ranks, (int32_t)o->rank, error));
    r->asked = train_plan_settings(&options, NULL);
    plan_settings *settings = &r->asked;
    BASE_TRY(
        plan_mesh_of(&settings->step, (int32_t)ranks, (int32_t)o->rank, &settings->mesh, error));
    plan_mesh_place_hosts(&settings->mesh, (int32_t)here);
    BASE_TRY(plan_mesh_check_near(&settings->mesh, (int32_t)here, error));
    BASE_TRY(plan_mesh_check_hosts(&settings->mesh, (int32_t)here, error));
    BASE_TRY(describe_machine(r, error));
    api_plan_take_capacities(r, &run);
    BASE_TRY(find_limits(r, settings, error));
    device_only_plan(r->dev); /* the program's own memory, found above, has the run's products */
    BASE_TRY(plan_memo_create(&r->memo, error));
    r->search.memo = r->memo;
    plan_limit(&r->search, settings);
    return o->fit ? SIFR_OK : plan_own(r, settings, error);
}

/* The smallest size of an axis that is to be chosen, with which the batch is a multiple of the
 * ranks that share it: the search begins there. `reason` stays where there is none. */
static sifr_status resolve_axes(api_plan_report *r, sifr_error *reason) {
    /* First what most models go with. */
    static const char *const axes[] = {"pipeline.stages", "tensor_parallel.size",
                                       "sifr.context_parallel.size"};
    sifr_config *config = &r->config;
    const bool open[] = {config_opens_stages(config), config_opens_tensors(config),
                         config_opens_contexts(config)};
    char text[24];
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        for (int64_t size = 2; open[i] && size <= r->options.ranks; size++) {
            if (r->options.ranks % size) continue;
            snprintf(text, sizeof text, "%lld", (long long)size);
            BASE_TRY(config_set(config, axes[i], text, reason));
            if (config_resolve(config, r->options.ranks, NULL) != SIFR_OK) continue;
            r->any_stages = open[0];
            r->any_tensors = open[1];
            r->any_contexts = open[2];
            return SIFR_OK;
        }
        if (open[i]) BASE_TRY(config_set(config, axes[i], "auto", reason));
    }
    return SIFR_USAGE;
}

/* With --fit only the global batch has to be there: how it is cut is what is looked for. */
static sifr_status resolve(api_plan_report *r, sifr_error *error) {
    sifr_config *config = &r->config;
    static const char *const cuts[] = {
        "train_micro_batch_size_per_gpu", "sifr.per_device_train_batch_size",
        "gradient_accumulation_steps", "sifr.gradient_accumulation_steps"};
    sifr_status status = config_resolve(config, r->options.ranks, error);
    if (status != SIFR_USAGE || !r->options.fit || !config_gives(config, "train_batch_size"))
        return status;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        BASE_TRY(config_set(config, cuts[i], "auto", error));
    status = config_resolve(config, r->options.ranks, error);
    return status == SIFR_USAGE ? resolve_axes(r, error) : status;
}

/* A disk that is not at hand is a size; the config then has a directory's usual name. */
static sifr_status name_disk(api_plan_report *r, sifr_error *error) {
    sifr_config *config = &r->config;
    static const char *const keys[] = {"zero_optimization.offload_optimizer.nvme_path",
                                       "sifr.nvme_path"};
    const char *path = r->options.nvme;
    uint64_t here;
    if (!path) return SIFR_OK;
    if (base_parse_bytes(path, "--nvme", &r->nvme_bytes, NULL) == SIFR_OK && r->nvme_bytes > 0)
        path = "/local_nvme";
    else if (base_free_space(path, &here, NULL) != SIFR_OK)
        return base_fail(error, SIFR_USAGE,
                         "--nvme %s: no directory here, and no size such as 4TiB", path);
    for (int i = 0; i < 2; i++) {
        bool given = r->nvme_bytes && config_gives(config, keys[i]);
        if (!given) BASE_TRY(config_set(config, keys[i], path, error));
    }
    return SIFR_OK;
}

/* Everything that the plan reads; what is made stays in the report, also where it fails. */
sifr_status api_plan_make(api_plan_report *r, sifr_error *error) {
    BASE_TRY(name_disk(r, error));
    BASE_TRY(resolve(r, error));
    if (!r->config.model) {
        char names[512];
        return base_fail(error, SIFR_USAGE,
                         "--model DIR is needed: a folder with a config.json, or the name of a "
                         "released model (%s)",
                         model_released_list(names, sizeof names));
    }
    BASE_TRY(train_take_base(&r->config, r->options.ranks, error));
    BASE_TRY(train_read_lora(&r->config, &r->lora, error));
    BASE_TRY(train_check_name(r->config.model, error));
    BASE_TRY(train_read_model_config(&r->config, &r->lora, &r->model_config, error));
    BASE_TRY(model_from_config(&r->model_config, &r->model, error));
    BASE_TRY(train_freeze(&r->config, r->model, r->log, error));
    if (!r->options.fit) /* which chooses another size */
        BASE_TRY(
            train_objective_check_sequences(&r->config, r->config.step.micro_batch_size, error));
    BASE_TRY(train_sequence_length(&r->config, &r->model_config, r->log, &r->length, error));
    return open_plan(r, error);
}

void api_plan_unmake(api_plan_report *r) {
    plan_free(r->schedule);
    plan_memo_free(r->memo);
    device_close(r->dev);
    sifr_model_free(r->model);
    model_lora_free(&r->lora);
    config_free(&r->config);
}
