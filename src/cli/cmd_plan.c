/* sifr plan: the schedule and the memory of a training step, from config.json alone: no weights are
 * read, no memory is taken, nothing runs. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/train_flags.h"
#include "engine/engine.h"
#include "plan/price.h"
#include "train/monitor.h"
#include "train/settings.h"

static const cli_usage usage = {
    "plan", NULL,
    "Says what a training step will take and do, without running it: memory by class, and with\n"
    "--dump the schedule, an instruction a line. Takes what `sifr train` takes; of the model\n"
    "folder it reads config.json only.",
    "sifr plan --config ds.json --model gpt2 --seq-length 1024\n"
    "sifr plan --config ds.json --model gpt2 --seq-length 1024 --dump | less"};

enum { EXTRA = 5 };

typedef struct plan_command {
    cli_train_flags flags;
    cli_option options[CLI_TRAIN_FLAGS + EXTRA];
    const char *config;
    int64_t world_size;
    bool dump, json, dry_run;
} plan_command;

/* What was planned. */
typedef struct plan_report {
    train_config config;
    formats_model_config model_config;
    sifr_model *model;
    device *dev;
    plan_schedule *schedule;
    int64_t length;
    uint64_t before, baseline; /* anonymous memory of the program, before and with the plan */
    sifr_error too_large;      /* message where this machine has less memory than that */
} plan_report;

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

/* As `sifr train` does: where the order is "auto", that of units if only that fits. */
static sifr_status lower(plan_report *r, sifr_error *error) {
    sifr_engine_options options = train_engine_options(&r->config, r->length);
    bool automatic = r->config.step_order == TRAIN_STEP_AUTO && options.micro_batches > 1;
    BASE_TRY(device_open_cpu(options.threads, NULL, &r->dev, error));
    plan_settings settings = engine_settings(&options, NULL);
    BASE_TRY(plan_lower(r->model, r->dev, &settings, &r->schedule, error));
    if (engine_check_memory(r->schedule, &r->too_large) == SIFR_OK || !automatic) return SIFR_OK;
    plan_schedule *other = NULL;
    settings.order = PLAN_UNIT;
    BASE_TRY(plan_lower(r->model, r->dev, &settings, &other, error));
    if (engine_check_memory(other, NULL) != SIFR_OK) {
        plan_free(other);
        return SIFR_OK;
    }
    plan_free(r->schedule);
    r->schedule = other;
    r->too_large = (sifr_error){0};
    return SIFR_OK;
}

static sifr_status make_plan(const plan_command *command, plan_report *r, sifr_error *error) {
    sifr_log log = cli_log("plan");
    if (command->world_size != 1)
        return base_fail(error, SIFR_USAGE,
                         "--world-size %lld: more than one rank is not built yet; 1 is",
                         (long long)command->world_size);
    BASE_TRY(train_config_create(&r->config, error));
    if (command->config) BASE_TRY(train_config_load(&r->config, command->config, error));
    BASE_TRY(cli_train_flags_set(&command->flags, &r->config, error));
    BASE_TRY(train_config_resolve(&r->config, 1, error));
    if (!r->config.model)
        return base_fail(error, SIFR_USAGE, "--model DIR is needed: a folder with a config.json");
    BASE_TRY(formats_model_config_load(r->config.model, &r->model_config, error));
    BASE_TRY(model_from_config(&r->model_config, &r->model, error));
    BASE_TRY(train_sequence_length(&r->config, &r->model_config, &log, &r->length, error));
    r->before = train_monitor_memory();
    BASE_TRY(lower(r, error));
    r->baseline = train_monitor_memory();
    return SIFR_OK;
}

static int64_t live_bytes(const plan_schedule *s) {
    int64_t sum = 0;
    for (int c = 0; c < PLAN_CLASSES; c++) sum += s->peak_bytes[c];
    return sum;
}

static void print_line(void *user, const char *line) {
    (void)user;
    puts(line);
}

static const char *peak_name(const plan_schedule *s, char out[128]) {
    if (s->peak_instruction < 0) return "between steps";
    const plan_instruction *i = &s->instructions[s->peak_instruction];
    snprintf(out, 128, "instruction %d, %s%s%s", s->peak_instruction,
             plan_action_name((plan_action)i->action), i->unit >= 0 ? " of " : "",
             i->unit >= 0 ? s->model->units[i->unit].name : "");
    return out;
}

static void print_text(const plan_report *r) {
    const plan_schedule *s = r->schedule;
    const plan_settings *settings = &s->settings;
    char text[32], name[128];
    printf("model        %s, %s parameters in %zu units, %s\n", r->model_config.model_type,
           base_format_count(sifr_model_parameters(r->model), text), r->model->unit_count,
           settings->dtype == DEVICE_BF16 ? "bf16" : "fp32");
    printf("step         %d x %lld sequences of %lld tokens, step_order %s, gradient_order %s%s\n",
           settings->micro_batches, (long long)settings->sequences, (long long)settings->length,
           settings->order == PLAN_UNIT ? "unit" : "batch",
           settings->sequential ? "sequential" : "tree",
           settings->recompute ? ", recompute unit" : "");
    printf("schedule     %s instructions, %.4g operations in products\n",
           base_format_count((int64_t)s->instruction_count, text), plan_operations(s));
    printf("\n%-16s %14s\n", "at the peak", "bytes");
    for (int c = 0; c < PLAN_CLASSES; c++) {
        char bytes[32];
        if (s->peak_bytes[c] == 0) continue;
        printf("%-16s %14lld  %9s\n", plan_class_name((plan_class)c), (long long)s->peak_bytes[c],
               base_format_bytes((uint64_t)s->peak_bytes[c], bytes));
    }
    if (s->total_bytes > live_bytes(s))
        printf("%-16s %14lld  %9s\n", "gaps", (long long)(s->total_bytes - live_bytes(s)),
               base_format_bytes((uint64_t)(s->total_bytes - live_bytes(s)), text));
    printf("%-16s %14lld  %9s\n", "all", (long long)s->total_bytes,
           base_format_bytes((uint64_t)s->total_bytes, text));
    printf("\nThe peak is at %s.\n", peak_name(s, name));
    printf("The program itself takes about %s beside it.\n", base_format_bytes(r->baseline, text));
    if (r->too_large.status != SIFR_OK)
        printf("It does not fit on this machine. %s\n", r->too_large.message);
}

static void append_line(void *user, const char *line) {
    json_array_append_new(user, json_string(line));
}

static int print_json(const plan_report *r, bool dump) {
    const plan_schedule *s = r->schedule;
    const plan_settings *settings = &s->settings;
    json_t *classes = json_object(), *units = json_array();
    for (int c = 0; c < PLAN_CLASSES; c++)
        json_object_set_new(classes, plan_class_name((plan_class)c),
                            json_integer(s->peak_bytes[c]));
    for (size_t u = 0; u < r->model->unit_count; u++)
        json_array_append_new(units, json_string(r->model->units[u].name));
    json_t *out = json_pack(
        "{s:I, s:I, s:I, s:o, s:i, s:I, s:o, s:f, s:I, s:s, s:I, s:i, s:I, s:s, s:b, s:i, s:b}",
        "peak_bytes", (json_int_t)s->total_bytes, "live_bytes", (json_int_t)live_bytes(s),
        "baseline_bytes", (json_int_t)r->baseline, "classes", classes, "peak_instruction",
        s->peak_instruction, "instructions", (json_int_t)s->instruction_count, "units", units,
        "product_operations", plan_operations(s), "parameters",
        (json_int_t)sifr_model_parameters(r->model), "precision",
        settings->dtype == DEVICE_BF16 ? "bf16" : "fp32", "micro_batch_size",
        (json_int_t)settings->sequences, "gradient_accumulation_steps", settings->micro_batches,
        "seq_length", (json_int_t)settings->length, "step_order",
        settings->order == PLAN_UNIT ? "unit" : "batch", "recompute", (int)settings->recompute,
        "world_size", settings->world_size, "fits", (int)(r->too_large.status == SIFR_OK));
    if (!out) return cli_fail_with("plan", SIFR_NO_MEMORY, "out of memory");
    if (dump) {
        json_t *lines = json_array();
        plan_dump(s, append_line, lines);
        json_object_set_new(out, "schedule", lines);
    }
    json_dumpf(out, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(out);
    return SIFR_OK;
}

static int plan(const plan_command *command) {
    plan_report *r = calloc(1, sizeof *r);
    sifr_error error = {0};
    int code = SIFR_OK;
    if (!r) return cli_fail_with("plan", SIFR_NO_MEMORY, "out of memory");
    if (make_plan(command, r, &error) != SIFR_OK)
        code = cli_fail("plan", &error);
    else if (command->json)
        code = print_json(r, command->dump);
    else if (command->dump)
        plan_dump(r->schedule, print_line, NULL);
    else
        print_text(r);
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
