/* sifr plan: the schedule, the memory, the wire and the predicted time of a training step, from
 * config.json alone: no weights are read, no memory is taken, nothing runs. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/plan_report.h"
#include "cli/train_flags.h"
#include "comm/cores.h"
#include "train/monitor.h"
#include "train/settings.h"

static const cli_usage usage = {
    "plan", NULL,
    "Says what a training step will take and do, without running it: memory by class, bytes on\n"
    "the wire, predicted time, the ZeRO stages beside each other, and with --dump the schedule, "
    "an\n"
    "instruction a line. Any number of ranks, none of which has to be there. Takes what `sifr\n"
    "train` takes; of the model folder it reads config.json only.",
    "sifr plan --config ds.json --model gpt2 --seq-length 1024\n"
    "sifr plan --config ds.json --model gpt2 --world-size 64 --ranks-per-host 8\n"
    "sifr plan --config ds.json --model gpt2 --world-size 64 --rank 5 --dump | less"};

enum { EXTRA = 8, MOST_RANKS = 1 << 20 };

typedef struct plan_command {
    cli_train_flags flags;
    cli_option options[CLI_TRAIN_FLAGS + EXTRA];
    const char *config, *machine;
    int64_t world_size, rank, ranks_per_host;
    bool dump, json, dry_run;
} plan_command;

static size_t make_options(plan_command *command) {
    size_t used = 0;
    command->options[used++] = (cli_option){.name = "config",
                                            .kind = CLI_TEXT,
                                            .argument = "FILE",
                                            .help = "DeepSpeed's JSON config",
                                            .value = &command->config};
    used += cli_train_flags_make(&command->flags, command->options + used);
    command->options[used++] = (cli_option){.name = "world-size",
                                            .kind = CLI_COUNT,
                                            .argument = "N",
                                            .help = "ranks (1)",
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
    command->options[used++] = (cli_option){.name = "dump",
                                            .kind = CLI_FLAG,
                                            .help = "print the schedule, an instruction a line",
                                            .value = &command->dump};
    command->options[used++] = (cli_option){.name = "dry-run",
                                            .kind = CLI_FLAG,
                                            .help = "taken as by train; plan never runs anything",
                                            .value = &command->dry_run};
    command->options[used++] = (cli_option){
        .name = "json", .kind = CLI_FLAG, .help = "print one JSON object", .value = &command->json};
    return used;
}

/* What a rank has of this machine, unless the file says otherwise. */
static sifr_status describe_machine(const plan_command *command, cli_plan_report *r,
                                    sifr_error *error) {
    r->machine = (plan_machine){0};
    BASE_TRY(plan_machine_measure(r->dev, NULL, DEVICE_MEASURE_BYTES, &r->machine, error));
    r->machine_file = command->machine;
    if (command->machine)
        BASE_TRY(plan_machine_load(command->machine, &r->machine, error));
    else
        BASE_TRY(plan_machine_load_stored(&r->machine, error));
    if (command->ranks_per_host) r->machine.ranks_per_host = (int32_t)command->ranks_per_host;
    int64_t here = command->world_size, most = r->machine.ranks_per_host;
    if (most > 0 && here > most) here = most;
    if (r->machine.room_bytes == 0 && here > 1)
        r->machine.room_bytes = (int64_t)engine_memory_room() / here;
    return SIFR_OK;
}

/* Plans and prices one stage; with `out` the schedule is the caller's. */
static sifr_status plan_stage(const cli_plan_report *r, plan_settings settings,
                              engine_order_choice *choice, cli_plan_stage *stage,
                              plan_schedule **out, sifr_error *error) {
    plan_schedule *s;
    if (r->config.step_order == TRAIN_STEP_AUTO) {
        BASE_TRY(engine_choose_order(r->model, r->dev, &settings, &r->machine, choice, error));
        settings.order = choice->order;
    }
    BASE_TRY(plan_lower(r->model, r->dev, &settings, &s, error));
    *stage = (cli_plan_stage){.order = settings.order,
                              .total_bytes = s->total_bytes,
                              .fits = engine_fits(s, &r->machine, NULL) == SIFR_OK};
    for (int c = 0; c < PLAN_CLASSES; c++) stage->classes[c] = s->largest_bytes[c];
    plan_wire(s, &stage->gathered, &stage->reduced);
    plan_wire_calls(s, &stage->gathers, &stage->reductions);
    sifr_status status = plan_predict(s, &r->machine, &stage->predicted, NULL, error);
    if (out && status == SIFR_OK)
        *out = s;
    else
        plan_free(s);
    return status;
}

static sifr_status plan_run(const plan_command *command, cli_plan_report *r, sifr_error *error) {
    sifr_engine_options options = train_engine_options(&r->config, r->length);
    int64_t ranks = command->world_size, here = command->ranks_per_host;
    if (here == 0 || here > ranks) here = ranks;
    if (options.threads == 0 && ranks > 1) options.threads = comm_threads_for((int)here);
    BASE_TRY(device_open_cpu(options.threads, NULL, &r->dev, error));
    plan_settings settings = engine_settings(&options, NULL);
    settings.rank = (int32_t)command->rank;
    settings.world_size = (int32_t)ranks;
    BASE_TRY(describe_machine(command, r, error));
    BASE_TRY(plan_stage(r, settings, &r->choice, &r->stage, &r->schedule, error));
    r->baseline = train_monitor_memory();
    if (engine_fits(r->schedule, &r->machine, &r->too_large) == SIFR_OK)
        r->too_large = (sifr_error){0};
    for (int i = 0; i < CLI_PLAN_STAGES && ranks > 1; i++) {
        engine_order_choice choice;
        settings.stage = i;
        BASE_TRY(plan_stage(r, settings, &choice, &r->stages[i], NULL, error));
    }
    return SIFR_OK;
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
    if (command->ranks_per_host > MOST_RANKS)
        return base_fail(error, SIFR_USAGE, "--ranks-per-host %lld: at most %d",
                         (long long)command->ranks_per_host, (int)MOST_RANKS);
    return SIFR_OK;
}

static sifr_status make_plan(const plan_command *command, cli_plan_report *r, sifr_error *error) {
    sifr_log log = cli_log("plan");
    BASE_TRY(check_ranks(command, error));
    BASE_TRY(train_config_create(&r->config, error));
    if (command->config) BASE_TRY(train_config_load(&r->config, command->config, error));
    BASE_TRY(cli_train_flags_set(&command->flags, &r->config, error));
    BASE_TRY(train_config_resolve(&r->config, command->world_size, error));
    if (!r->config.model)
        return base_fail(error, SIFR_USAGE, "--model DIR is needed: a folder with a config.json");
    BASE_TRY(formats_model_config_load(r->config.model, &r->model_config, error));
    BASE_TRY(model_from_config(&r->model_config, &r->model, error));
    BASE_TRY(train_freeze(&r->config, r->model, &log, error));
    BASE_TRY(train_sequence_length(&r->config, &r->model_config, &log, &r->length, error));
    return plan_run(command, r, error);
}

static void print_line(void *user, const char *line) {
    (void)user;
    puts(line);
}

static int plan(const plan_command *command) {
    cli_plan_report *r = calloc(1, sizeof *r);
    sifr_error error = {0};
    int code = SIFR_OK;
    if (!r) return cli_fail_with("plan", SIFR_NO_MEMORY, "out of memory");
    if (make_plan(command, r, &error) != SIFR_OK)
        code = cli_fail("plan", &error);
    else if (command->json)
        code = cli_plan_print_json(r, command->dump);
    else if (command->dump)
        plan_dump(r->schedule, print_line, NULL);
    else
        cli_plan_print(r);
    plan_free(r->schedule);
    device_close(r->dev);
    sifr_model_free(r->model);
    train_config_free(&r->config);
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
