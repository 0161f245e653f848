/* sifr plan: the schedule, the memory, the wire and the predicted time of a training step, from
 * config.json alone: no weights are read, no memory is taken, nothing runs. */
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/errors.h"
#include "base/file.h"
#include "base/json.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/train_flags.h"
#include "sifr/plan.h"

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

/* One plan after the other takes and gives back alike blocks: without this the system clears pages
 * for each, which takes a third of the time. */
static void keep_freed_memory(void) {
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
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
    if (command->ranks_per_host > 0 && command->world_size > command->ranks_per_host &&
        command->world_size % command->ranks_per_host != 0)
        return base_fail(error, SIFR_USAGE,
                         "--ranks-per-host %lld: hosts have as many ranks each; give a number that "
                         "divides %lld",
                         (long long)command->ranks_per_host, (long long)command->world_size);
    return SIFR_OK;
}

static sifr_status configure(const plan_command *command, sifr_config *config, sifr_error *error) {
    BASE_TRY(check_ranks(command, error));
    if (command->config) BASE_TRY(sifr_config_load(config, command->config, error));
    return cli_train_flags_set(&command->flags, config, error);
}

static sifr_status make_plan(const plan_command *command, sifr_context *context,
                             const sifr_config *config, sifr_plan **out, sifr_error *error) {
    const sifr_plan_options options = {.size = sizeof options,
                                       .ranks = command->world_size,
                                       .rank = command->rank,
                                       .ranks_per_host = command->ranks_per_host,
                                       .machine = command->machine,
                                       .device_memory = command->device_bytes,
                                       .host_memory = command->host_bytes,
                                       .nvme = command->nvme,
                                       .fit = command->fit};
    BASE_TRY(sifr_plan_create(context, config, &options, out, error));
    keep_freed_memory(); /* of many plans from now on */
    return SIFR_OK;
}

/* --- what is printed --- */

static sifr_status print_part(sifr_plan *plan, sifr_plan_part part, FILE *to, sifr_error *error) {
    char *text;
    BASE_TRY(sifr_plan_text(plan, part, &text, error));
    fputs(text, to);
    fflush(to); /* what comes next may take a while */
    sifr_text_free(text);
    return SIFR_OK;
}

static sifr_status print_json(sifr_plan *plan, bool dump, sifr_error *error) {
    char *text;
    BASE_TRY(sifr_plan_json(plan, dump, &text, error));
    puts(text);
    sifr_text_free(text);
    return SIFR_OK;
}

static bool is_given(const sifr_config *config, const char *name) {
    char *text;
    if (sifr_config_value(config, name, &text, NULL) != SIFR_OK) return false;
    bool given = strcmp(text, "null") != 0;
    sifr_text_free(text);
    return given;
}

/* Whether the config names a model of which nothing is here, as one known by its name. */
static bool lacks_folder(const sifr_config *config) {
    char *text;
    if (sifr_config_value(config, "model", &text, NULL) != SIFR_OK) return false;
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    const char *model = json_string_value(value);
    bool lacks = !model || access(model, F_OK) != 0;
    json_decref(value);
    sifr_text_free(text);
    return lacks;
}

/* The command that runs the config, with the options that the config does not hold. */
static void say_command(FILE *to, const plan_command *command, const sifr_plan *plan,
                        const sifr_config *config) {
    const char *path = command->output;
    int64_t ranks = command->world_size;
    sifr_plan_figures figures = {.size = sizeof figures};
    char output[BASE_PATH_LENGTH], quoted[BASE_QUOTED];
    sifr_plan_get(plan, &figures);
    fprintf(to, "%-12s %s: run it with\n%-12s sifr train --config ", "config", path, "");
    fputs(base_quote(path, quoted, sizeof quoted), to);
    if (ranks > 1) fprintf(to, " --ranks %lld", (long long)ranks);
    if (ranks > 1 && figures.ranks_per_host > 0 && figures.ranks_per_host < ranks)
        fputs(" --hostfile HOSTS", to);
    if (lacks_folder(config)) fputs(" --model FOLDER", to);
    if (!is_given(config, "data") && !is_given(config, "dataset")) fputs(" --data PATH", to);
    if (!is_given(config, "output")) {
        size_t length = strlen(path);
        bool json = length > 5 && strcmp(path + length - 5, ".json") == 0;
        snprintf(output, sizeof output, "%.*s-run", (int)(json ? length - 5 : length), path);
        fputs(" --output ", to);
        fputs(base_quote(output, quoted, sizeof quoted), to);
    }
    fputc('\n', to);
}

static sifr_status write_config(const sifr_config *config, const char *path, sifr_error *error) {
    char *text;
    sifr_status status = SIFR_OK;
    BASE_TRY(sifr_config_json(config, &text, error));
    if (path)
        status = base_write_file(path, text, strlen(text), error);
    else
        fputs(text, stdout);
    sifr_text_free(text);
    return status;
}

static sifr_status print_chosen(const plan_command *command, sifr_plan *plan,
                                const sifr_config *config, sifr_error *error) {
    FILE *to = command->output ? stdout : stderr;
    if (command->output || !command->json) BASE_TRY(write_config(config, command->output, error));
    if (command->json) return print_json(plan, false, error);
    BASE_TRY(print_part(plan, SIFR_PLAN_CHOSEN, to, error));
    if (command->output) say_command(to, command, plan, config);
    return SIFR_OK;
}

static sifr_status fit(const plan_command *command, sifr_plan *plan, sifr_error *error) {
    sifr_config *chosen;
    BASE_TRY(sifr_plan_fit(plan, &chosen, error));
    sifr_status status = print_chosen(command, plan, chosen, error);
    sifr_config_free(chosen);
    return status;
}

static sifr_status print_plan(const plan_command *command, sifr_plan *plan, sifr_error *error) {
    if (command->json) return print_json(plan, command->dump, error);
    if (command->dump) {
        BASE_TRY(print_part(plan, SIFR_PLAN_SCHEDULE, stdout, error));
    } else {
        BASE_TRY(print_part(plan, SIFR_PLAN_OWN, stdout, error));
        BASE_TRY(print_part(plan, SIFR_PLAN_OTHERS, stdout, error));
    }
    return command->compare ? print_part(plan, SIFR_PLAN_DEEPSPEED, stdout, error) : SIFR_OK;
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

/* Whether a config has all that --fit writes, which people leave out of theirs. */
static bool is_chosen(const json_t *config) {
    static const char *const sections[] = {
        "zero_optimization",        "sifr",           "data_types",  "comms_logger",
        "activation_checkpointing", "flops_profiler", "tensorboard", "csv_monitor"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (!json_is_object(json_object_get(config, sections[i]))) return false;
    return !json_object_get(config, "model_type");
}

/* A mistyped --output must not replace the data, what describes a model, or somebody's config. */
static sifr_status check_output(const char *path, sifr_error *error) {
    json_t *config = NULL;
    sifr_error reason;
    if (!path || !base_is_file(path)) return SIFR_OK;
    bool ours = base_json_load(path, 1 << 24, &config, &reason) == SIFR_OK && is_chosen(config);
    json_decref(config);
    if (ours) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "--output %s: the file exists and is no config that --fit wrote; name another",
                     path);
}

static sifr_status plan_with(plan_command *command, sifr_context *context, sifr_config *config,
                             sifr_error *error) {
    sifr_plan *plan;
    take_output(command);
    BASE_TRY(check_output(command->output, error));
    BASE_TRY(configure(command, config, error));
    BASE_TRY(make_plan(command, context, config, &plan, error));
    sifr_status status =
        command->fit ? fit(command, plan, error) : print_plan(command, plan, error);
    sifr_plan_free(plan);
    return status;
}

static int plan(plan_command *command) {
    const sifr_context_options options = {.size = sizeof options, .log = cli_log("plan")};
    sifr_context *context = NULL;
    sifr_config *config = NULL;
    sifr_error error = {0};
    sifr_status status = sifr_context_create(&options, &context, &error);
    if (status == SIFR_OK) status = sifr_config_create(&config, &error);
    if (status == SIFR_OK) status = plan_with(command, context, config, &error);
    sifr_config_free(config);
    sifr_context_free(context);
    return status == SIFR_OK ? SIFR_OK : cli_fail("plan", &error);
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
