/* sifr plan: the schedule, the memory, the wire and the predicted time of a training step, from
 * config.json alone: no weights are read, no memory is taken, nothing runs. */
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/process.h"
#include "base/system.h"
#include "base/text.h"
#include "base/topology.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/plan/plan_device.h"
#include "cli/plan/plan_report.h"
#include "cli/train_flags.h"
#include "comm/launcher.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/search/memo.h"
#include "train/prepare/run_settings.h"
#include "train/prepare/run_task.h"
#include "train/report/monitor.h"

static const cli_usage usage = {
    "plan", NULL,
    "Says what a training step will take and do, without running it: memory by class, whether it\n"
    "fits and what else would, bytes on the wire, predicted time, the ZeRO stages beside each\n"
    "other, and with --dump the schedule, an instruction a line. With --fit it chooses stage,\n"
    "micro batch (of the same global batch), recomputation and step order, and writes the config.\n"
    "Any number of ranks, none of which has to be there. Takes what `sifr train` takes; of the\n"
    "model folder it reads config.json only.",
    "sifr plan --config ds.json --model gpt2 --seq-length 1024\n"
    "sifr plan --config ds.json --model gpt2 --world-size 64 --ranks-per-host 8\n"
    "sifr plan --config ds.json --model gpt2 --world-size 8 --device-memory 24GiB --fit "
    "--output fit.json\n"
    "sifr plan --config ds.json --model gpt2 --world-size 64 --rank 5 --dump | less"};

enum { EXTRA = 16, MOST_RANKS = 1 << 20 };

typedef struct plan_command {
    cli_train_flags flags;
    cli_option options[CLI_TRAIN_OPTIONS + EXTRA];
    const char *config, *machine, *compare;
    const char *output; /* of --fit */
    const char *nvme;
    int64_t nvme_bytes; /* where that is no directory */
    int64_t world_size, rank, ranks_per_host, device_bytes, host_bytes;
    const char *dry_run;
    bool dump, json, fit;
} plan_command;

static size_t make_options(plan_command *command) {
    size_t used = 0;
    command->options[used++] = (cli_option){.name = "Options", .kind = CLI_GROUP};
    command->options[used++] = (cli_option){.name = "config",
                                            .kind = CLI_TEXT,
                                            .argument = "FILE",
                                            .help = "DeepSpeed's JSON config",
                                            .value = &command->config};
    used += cli_train_flags_make(&command->flags, command->options + used);
    command->options[used++] = (cli_option){.name = "The plan", .kind = CLI_GROUP};
    command->options[used++] = (cli_option){.name = "world-size",
                                            .kind = CLI_COUNT,
                                            .argument = "N",
                                            .help = "ranks (1)",
                                            .value = &command->world_size};
    command->options[used++] = (cli_option){.name = "ranks", /* else short for ranks-per-host */
                                            .kind = CLI_COUNT,
                                            .argument = "N",
                                            .help = "another name of --world-size",
                                            .value = &command->world_size};
    command->options[used++] = (cli_option){.name = "rank",
                                            .kind = CLI_COUNT,
                                            .argument = "R",
                                            .help = "the one whose plan this is (0)",
                                            .value = &command->rank};
    command->options[used++] = (cli_option){.name = "ranks-per-host",
                                            .kind = CLI_COUNT,
                                            .argument = "N",
                                            .help = "ranks that share a host (all)",
                                            .value = &command->ranks_per_host};
    command->options[used++] =
        (cli_option){.name = "machine",
                     .kind = CLI_TEXT,
                     .argument = "FILE",
                     .help = "prices on this machine (JSON), not on what is measured here",
                     .value = &command->machine};
    command->options[used++] = (cli_option){.name = "device-memory",
                                            .kind = CLI_BYTES,
                                            .argument = "BYTES",
                                            .help = "what a rank may take, 24GiB (what is here)",
                                            .value = &command->device_bytes};
    command->options[used++] = (cli_option){.name = "host-memory",
                                            .kind = CLI_BYTES,
                                            .argument = "BYTES",
                                            .help = "what the ranks of a host may take together",
                                            .value = &command->host_bytes};
    command->options[used++] = (cli_option){.name = "nvme",
                                            .kind = CLI_TEXT,
                                            .argument = "DIR|BYTES",
                                            .help = "state and activations may go there, or "
                                                    "so much of each host's disk may be taken",
                                            .value = &command->nvme};
    command->options[used++] =
        (cli_option){.name = "fit",
                     .kind = CLI_FLAG,
                     .help = "choose what fits best; --output FILE takes the config (standard "
                             "output)",
                     .value = &command->fit};
    command->options[used++] = (cli_option){.name = "compare",
                                            .kind = CLI_TEXT,
                                            .argument = "deepspeed",
                                            .help = "beside what DeepSpeed's estimators say",
                                            .value = &command->compare};
    command->options[used++] = (cli_option){.name = "dump",
                                            .kind = CLI_FLAG,
                                            .help = "print the schedule, an instruction a line",
                                            .value = &command->dump};
    command->options[used++] = (cli_option){.name = "dry-run",
                                            .kind = CLI_SWITCH,
                                            .argument = "all",
                                            .help = "taken as by train; plan never runs anything",
                                            .value = &command->dry_run};
    command->options[used++] = (cli_option){
        .name = "json", .kind = CLI_FLAG, .help = "print one JSON object", .value = &command->json};
    return used;
}

static sifr_status load_machine(const plan_command *command, plan_machine *machine,
                                sifr_error *error) {
    if (!command->machine) return plan_machine_load_stored(machine, error);
    return plan_machine_load(command->machine, machine, error);
}

/* What a rank has of this machine, unless the file or a flag says otherwise. */
static sifr_status describe_machine(const plan_command *command, cli_plan_report *r,
                                    sifr_error *error) {
    BASE_TRY(load_machine(command, &r->machine, error));
    bool known = plan_machine_is_known(&r->machine);
    bool gpu = !command->machine && device_is_hidden(r->dev); /* stored figures are a CPU's */
    if (!known && command->machine && r->machine.device == PLAN_MACHINE_CUDA)
        return base_fail(error, SIFR_USAGE,
                         "%s: a GPU that is not here cannot be measured; give "
                         "fp32_operations_per_s, bf16_operations_per_s and memory_bytes_per_s",
                         command->machine);
    r->measured = !known || gpu || !command->machine; /* stored ones were, too */
    if (!known || gpu) {
        BASE_TRY(plan_machine_measure(r->dev, NULL, DEVICE_MEASURE_BYTES, &r->machine, error));
        BASE_TRY(load_machine(command, &r->machine, error));
    }
    r->order_machine = plan_machine_unknown();
    plan_machine_typical(r->dev, &r->order_machine);
    BASE_TRY(load_machine(command, &r->order_machine, error));
    if (command->ranks_per_host) r->machine.ranks_per_host = (int32_t)command->ranks_per_host;
    int64_t here = r->machine.ranks_per_host ? r->machine.ranks_per_host : command->world_size;
    r->order_machine.ranks_per_host = r->machine.ranks_per_host;
    if (!command->machine)
        r->ranks_per_node =
            base_topology_ranks_per_node((int32_t)base_min_i64(here, command->world_size));
    return SIFR_OK;
}

/* One plan after the other takes and gives back alike blocks: without this the system clears pages
 * for each, which takes a third of the time. */
static void keep_freed_memory(void) {
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

static int processors(void) {
    base_system system;
    base_system_read(&system);
    return system.cpus;
}

/* A disk that is given as a size is nobody else's. */
static sifr_status find_disks(const plan_command *command, cli_plan_report *r, sifr_error *error) {
    BASE_TRY(train_disk_find(&r->config, r->model, &r->disk, error));
    if (!command->nvme_bytes) return SIFR_OK;
    r->disk.swap = NULL;
    r->disk.swap_bytes = command->nvme_bytes;
    r->disk.same = false;
    return SIFR_OK;
}

/* The program as it stands with a plan, before the block is taken. That plan serves on, where it
 * does not depend on what room there is. */
static sifr_status find_limits(const plan_command *command, cli_plan_report *r,
                               const plan_settings *settings, sifr_error *error) {
    BASE_TRY(plan_lower(r->model, r->dev, settings, &r->schedule, error));
    int64_t taken = (int64_t)base_process_memory();
    int64_t of_mpi = command->world_size > 1 ? comm_mpi_bytes(comm_mpi_built()) : 0;
    r->limits = (cli_plan_limits){.device_bytes = command->device_bytes,
                                  .host_bytes = command->host_bytes,
                                  .taken = taken,
                                  .baseline = taken + of_mpi};
    if (settings->step.recompute == SIFR_RECOMPUTE_AUTO || command->fit) {
        plan_free(r->schedule);
        r->schedule = NULL;
    }
    cli_plan_limits_find(&r->limits, command->world_size, &r->machine);
    BASE_TRY(find_disks(command, r, error));
    r->search = train_search(&r->config, r->model, r->dev, &r->machine, r->limits.room_bytes,
                             &r->disk, (int32_t)r->limits.ranks_here);
    r->search.order_machine = &r->order_machine;
    r->search.threads = processors();
    if (r->limits.is_shared) r->search.spare_bytes = plan_spare(r->limits.room_bytes);
    r->search.host_room_bytes = r->limits.host_room_bytes;
    return SIFR_OK;
}

static void add_reason(sifr_error *all, const sifr_error *reason) {
    size_t used = strlen(all->message);
    all->status = SIFR_NO_MEMORY;
    snprintf(all->message + used, sizeof all->message - used, "%s%s", used ? "; " : "",
             reason->message);
}

/* All that is short of what the step takes: memory, the disk for state, that for checkpoints. */
static bool find_short(cli_plan_report *r) {
    const plan_search *search = &r->search;
    int64_t nvme = r->own.nvme_bytes;
    char need[32], text[CLI_PLAN_DISK_LENGTH];
    sifr_error reason = {0};
    r->too_large = (sifr_error){0};
    if (engine_fits(r->schedule, &r->machine, &reason) != SIFR_OK) {
        add_reason(&r->too_large, &reason);
    } else if (r->own.stage_bytes[1] > search->room_bytes) {
        snprintf(reason.message, sizeof reason.message,
                 "memory: a rank of stage %d takes %s, and has room for %s", (int)r->own.fullest,
                 base_format_bytes((uint64_t)r->own.stage_bytes[1], need),
                 base_format_bytes((uint64_t)search->room_bytes, text));
        add_reason(&r->too_large, &reason);
    }
    if (search->disk_bytes > 0 && nvme > search->disk_bytes) {
        snprintf(reason.message, sizeof reason.message, "disk: a rank puts %s there, and may %s",
                 base_format_bytes((uint64_t)nvme, need), cli_plan_disk(r, text));
        add_reason(&r->too_large, &reason);
    }
    if (train_disk_check(&r->disk, &search->output, r->model, &r->own.settings, nvme, &reason) !=
        SIFR_OK)
        add_reason(&r->too_large, &reason);
    return r->too_large.status == SIFR_OK;
}

/* The config's own step. */
static sifr_status plan_own(cli_plan_report *r, plan_settings *settings, sifr_error *error) {
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

/* What else is asked, the longest answers first; of one rank there are no stages. */
enum {
    ASK_LENGTH,
    ASK_SEQUENCES,
    ASK_BETWEEN,
    ASK_STAGES,
    MOST_ASKED = ASK_STAGES + CLI_PLAN_STAGES + PLAN_NEIGHBOURS
};

static void ask_largest(const plan_outcome *own, plan_setter *set, int64_t near, int64_t last,
                        plan_trial *out) {
    *out = (plan_trial){.question = PLAN_ASK_LARGEST, .settings = own->settings};
    out->settings.mesh.place[PLAN_AXIS_STAGE] = own->fullest;
    out->set = set;
    out->near = near;
    out->last = last;
}

static size_t ask_stages(const cli_plan_report *r, plan_trial *trials) {
    size_t count = plan_mesh_ranks(&r->own.settings.mesh, PLAN_WORLD) == 1 ? 0 : CLI_PLAN_STAGES;
    for (size_t i = 0; i < count; i++) {
        trials[i].settings = r->own.settings;
        plan_choose(&r->search, &trials[i].settings, PLAN_CHOICE_STAGE, (int32_t)i);
    }
    return count;
}

/* The stages beside each other, the settings next to these, the limits. */
static sifr_status plan_others(cli_plan_report *r, sifr_error *error) {
    const plan_settings *own = &r->own.settings;
    plan_trial *trials;
    BASE_TRY(base_alloc(MOST_ASKED, sizeof *trials, &trials, error));
    ask_largest(&r->own, plan_set_length, own->step.seq_length,
                INT32_MAX / own->step.micro_batch_size, &trials[ASK_LENGTH]);
    ask_largest(&r->own, plan_set_sequences, own->step.micro_batch_size,
                INT32_MAX / own->step.seq_length, &trials[ASK_SEQUENCES]);
    trials[ASK_BETWEEN] = (plan_trial){.question = PLAN_ASK_BETWEEN, .settings = *own};
    plan_trial *stages = trials + ASK_STAGES;
    size_t stage_count = ask_stages(r, stages);
    plan_trial *neighbours = stages + stage_count;
    r->change_count = plan_neighbours(&r->search, own, neighbours);
    sifr_status status =
        plan_try_all(&r->search, trials, ASK_STAGES + stage_count + r->change_count, error);
    r->largest_length = trials[ASK_LENGTH].largest;
    r->largest_sequences = trials[ASK_SEQUENCES].largest;
    for (size_t i = 0; i < CLI_PLAN_STAGES; i++) {
        bool others = i < stage_count && (int32_t)i != own->step.zero.stage;
        r->stages[i] = others ? stages[i].outcome : r->own;
    }
    for (size_t i = 0; i < r->change_count; i++) r->changes[i] = neighbours[i].outcome;
    if (trials[ASK_BETWEEN].is_between) r->changes[r->change_count++] = trials[ASK_BETWEEN].outcome;
    free(trials);
    return status;
}

static sifr_status plan_run(const plan_command *command, cli_plan_report *r, sifr_error *error) {
    sifr_settings options = train_step_settings(&r->config, r->length);
    int64_t ranks = command->world_size, here = command->ranks_per_host;
    if (here == 0 || here > ranks) here = ranks;
    if (options.threads == 0) options.threads = base_topology_threads((int)here);
    r->machine = plan_machine_unknown();
    r->machine_file = command->machine;
    cli_plan_run run = {.ranks = (int32_t)ranks, .here = (int32_t)here, .fit = command->fit};
    BASE_TRY(cli_plan_open_device(r, &options, &run, error));
    BASE_TRY(engine_check_settings(&options, (int32_t)ranks, (int32_t)command->rank, error));
    plan_settings settings = train_plan_settings(&options, NULL);
    BASE_TRY(plan_mesh_of(&settings.step, (int32_t)ranks, (int32_t)command->rank, &settings.mesh,
                          error));
    BASE_TRY(describe_machine(command, r, error));
    cli_plan_take_rooms(r, &run);
    BASE_TRY(find_limits(command, r, &settings, error));
    keep_freed_memory();
    device_only_plan(r->dev); /* the program's own memory, found above, has the run's products */
    BASE_TRY(plan_memo_create(&r->memo, error));
    r->search.memo = r->memo;
    plan_limit(&r->search, &settings);
    if (command->fit) return cli_plan_fit(r, &settings, command->output, command->json, error);
    BASE_TRY(plan_own(r, &settings, error));
    if (command->dump && !command->json) return SIFR_OK;
    if (!command->json) cli_plan_print_own(r);
    return plan_others(r, error);
}

static sifr_status check_ranks(const plan_command *command, sifr_error *error) {
    if (command->world_size < 1 || command->world_size > MOST_RANKS)
        return base_fail(error, SIFR_USAGE, "--world-size %lld: 1 to %d ranks can be planned",
                         (long long)command->world_size, (int)MOST_RANKS);
    if (command->rank >= command->world_size)
        return base_fail(error, SIFR_USAGE,
                         "--rank %lld: of %lld ranks the last one is %lld (--world-size)",
                         (long long)command->rank, (long long)command->world_size,
                         (long long)command->world_size - 1);
    if (command->compare && strcmp(command->compare, "deepspeed") != 0)
        return base_fail(error, SIFR_USAGE, "--compare %s: only deepspeed is known",
                         command->compare);
    if (command->fit && (command->dump || command->compare))
        return base_fail(error, SIFR_USAGE,
                         "--fit writes a config: without --dump and --compare; `sifr plan "
                         "--config` says them of that config");
    if (command->ranks_per_host > MOST_RANKS)
        return base_fail(error, SIFR_USAGE, "--ranks-per-host %lld: at most %d",
                         (long long)command->ranks_per_host, (int)MOST_RANKS);
    return SIFR_OK;
}

/* With --fit only the global batch has to be there: how it is cut is what is looked for. */
static sifr_status resolve(const plan_command *command, sifr_config *config, sifr_error *error) {
    static const char *const cuts[] = {
        "train_micro_batch_size_per_gpu", "sifr.per_device_train_batch_size",
        "gradient_accumulation_steps", "sifr.gradient_accumulation_steps"};
    sifr_status status = config_resolve(config, command->world_size, error);
    if (status != SIFR_USAGE || !command->fit || !config_gives(config, "train_batch_size"))
        return status;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        BASE_TRY(config_set(config, cuts[i], "auto", error));
    return config_resolve(config, command->world_size, error);
}

/* A disk that is not at hand is a size; the config then has a directory's usual name. */
static sifr_status name_disk(plan_command *command, sifr_config *config, sifr_error *error) {
    static const char *const keys[] = {"zero_optimization.offload_optimizer.nvme_path",
                                       "sifr.nvme_path"};
    const char *path = command->nvme;
    uint64_t here;
    if (!path) return SIFR_OK;
    if (base_parse_bytes(path, "--nvme", &command->nvme_bytes, NULL) == SIFR_OK &&
        command->nvme_bytes > 0)
        path = "/local_nvme";
    else if (base_free_space(path, &here, NULL) != SIFR_OK)
        return base_fail(error, SIFR_USAGE,
                         "--nvme %s: no directory here, and no size such as 4TiB", path);
    for (int i = 0; i < 2; i++) {
        bool given = command->nvme_bytes && config_gives(config, keys[i]);
        if (!given) BASE_TRY(config_set(config, keys[i], path, error));
    }
    return SIFR_OK;
}

static sifr_status make_plan(plan_command *command, cli_plan_report *r, sifr_error *error) {
    sifr_log log = cli_log("plan");
    BASE_TRY(check_ranks(command, error));
    BASE_TRY(config_create(&r->config, error));
    if (command->config) BASE_TRY(config_load(&r->config, command->config, error));
    BASE_TRY(cli_train_flags_set(&command->flags, &r->config, error));
    BASE_TRY(name_disk(command, &r->config, error));
    BASE_TRY(resolve(command, &r->config, error));
    if (!r->config.model)
        return base_fail(error, SIFR_USAGE, "--model DIR is needed: a folder with a config.json");
    BASE_TRY(train_take_base(&r->config, command->world_size, error));
    BASE_TRY(train_read_lora(&r->config, &r->lora, error));
    BASE_TRY(train_read_model_config(&r->config, &r->lora, &r->model_config, error));
    BASE_TRY(model_from_config(&r->model_config, &r->model, error));
    BASE_TRY(train_freeze(&r->config, r->model, &log, error));
    BASE_TRY(train_sequence_length(&r->config, &r->model_config, &log, &r->length, error));
    return plan_run(command, r, error);
}

/* --output is the trained model's folder elsewhere; with --fit it is the config's file. */
static void take_output(plan_command *command) {
    for (size_t i = 0; i < command->flags.count && command->fit; i++) {
        cli_train_flag *row = &command->flags.rows[i];
        if (strcmp(row->flag.name, "output") != 0 || !row->given) continue;
        command->output = row->text;
        row->given = false;
    }
}

static void print_line(void *user, const char *line) {
    (void)user;
    puts(line);
}

static int plan(plan_command *command) {
    cli_plan_report *r = calloc(1, sizeof *r);
    sifr_error error = {0};
    int code = SIFR_OK;
    if (!r) return cli_fail_with("plan", SIFR_NO_MEMORY, "out of memory");
    take_output(command);
    if (make_plan(command, r, &error) != SIFR_OK)
        code = cli_fail("plan", &error);
    else if (command->fit)
        ; /* has said what it chose */
    else if (command->json)
        code = cli_plan_print_json(r, command->dump);
    else if (command->dump)
        plan_dump(r->schedule, print_line, NULL);
    else
        cli_plan_print_others(r);
    if (code == SIFR_OK && command->compare && !command->json) cli_plan_print_deepspeed(r);
    plan_free(r->schedule);
    plan_memo_free(r->memo);
    device_close(r->dev);
    sifr_model_free(r->model);
    model_lora_free(&r->lora);
    config_free(&r->config);
    free(r);
    return code;
}

int cli_plan(int argc, char **argv) {
    plan_command *command = calloc(1, sizeof *command);
    int code;
    if (!command) return cli_fail_with("plan", SIFR_NO_MEMORY, "out of memory");
    command->world_size = 1;
    size_t count = make_options(command);
    if (cli_parse(&usage, command->options, count, argc, argv, NULL, &code)) {
        code = plan(command);
        cli_train_flags_free(&command->flags);
    }
    free(command);
    return code;
}
