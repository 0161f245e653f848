/* sifr quickstart: from a model folder and data to a config that fits this machine, and the command
 * that runs it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/quote.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/launch/launch_choice.h"
#include "cli/options.h"
#include "cli/quickstart/quickstart.h"
#include "sifr/context.h"

static const char name[] = "quickstart";

static const cli_usage usage = {
    name, NULL,
    "Makes a config to begin with: asks for a model folder, data and what the machine is, plans a\n"
    "step that fits, writes a config in which a comment says what each key does, and the command\n"
    "that runs it. Each question is also an option, and is not asked then. Without a terminal\n"
    "nothing is asked.",
    "sifr quickstart\n"
    "sifr quickstart --model gpt2 --data books/ --output q.json\n"
    "sifr quickstart --model gpt2 --data chats.jsonl --chat-template chatml --train lora --yes"};

/* --- options --- */

enum { OPTIONS = 20 + QUICKSTART_PASSED };

static void make_options(quickstart_answers *a, bool *yes, cli_option out[OPTIONS]) {
    const cli_option options[OPTIONS] = {
        {"model", CLI_TEXT, "DIR", "Hugging Face model folder to train", &a->model, NULL, false},
        {"data", CLI_LIST, "PATH", "what is trained on: text, token stores or files of rows",
         &a->data, NULL, false},
        {"learn", CLI_TEXT, "WHAT",
         "auto, text, rows (chats and the like), preferences, labels or tags (default: auto, by "
         "the data)",
         &a->learn, NULL, false},
        {"train", CLI_TEXT, "all|lora", "all weights, or adapters beside them (default: all)",
         &a->train, NULL, false},
        {"output", CLI_TEXT, "FILE", "the config (default: quickstart.json)", &a->output, NULL,
         false},
        {"run", CLI_TEXT, "DIR", "the run's output folder (default: the config's name and -run)",
         &a->run, NULL, false},
        {"seq-length", CLI_COUNT, "N", "tokens of a sequence (default: by model and data)",
         &a->length, NULL, false},
        {"num-train-epochs", CLI_TEXT, "X", "times through the data (default: by what is learned)",
         &a->epochs, NULL, false},
        {"learning-rate", CLI_TEXT, "X", "learning rate (default: by what is learned)", &a->rate,
         NULL, false},
        {"chat-template", CLI_TEXT, "FILE",
         "chat template in place of the model's: a file, or a name (chatml, llama3, ...)",
         &a->passed[0], NULL, false},
        {"text-column", CLI_TEXT, "NAME", "column of the texts of labelled rows", &a->passed[1],
         NULL, false},
        {"label-column", CLI_TEXT, "NAME", "column of their labels", &a->passed[2], NULL, false},
        {"data-fields", CLI_LIST, "NAME=FIELD",
         "fields of rows that the files name otherwise, as prompt=question", &a->fields, NULL,
         false},
        {"ignore-fields", CLI_LIST, "NAME", "fields of rows that are not read", &a->ignored, NULL,
         false},
        {"The machine", CLI_GROUP, NULL, NULL, NULL, NULL, false},
        {"ranks", CLI_COUNT, "N", "processes that share the work, one for each GPU (default: 1)",
         &a->ranks, NULL, false},
        {"ranks-per-host", CLI_COUNT, "N", "ranks that share a host (default: all)",
         &a->ranks_per_host, NULL, false},
        {"device", CLI_TEXT, "auto|cpu|cuda", "what ranks compute on (default: auto)", &a->device,
         NULL, false},
        {"host-memory", CLI_BYTES, "BYTES",
         "what the ranks of a host may take together (default: what is here)", &a->host_memory,
         NULL, false},
        {"device-memory", CLI_BYTES, "BYTES",
         "what a rank may take of its GPU, 24GiB (default: what is here)", &a->device_memory, NULL,
         false},
        {"nvme", CLI_TEXT, "DIR",
         "folder for what does not fit in memory (default: the config's name and -offload, made "
         "where it is needed)",
         &a->nvme, NULL, false},
        {"machine", CLI_TEXT, "FILE", "plan by this machine's prices (JSON), not by those here",
         &a->machine, NULL, false},
        {"yes", CLI_FLAG, NULL, "ask nothing: take the defaults", yes, NULL, false},
    };
    memcpy(out, options, sizeof options);
}

/* --- questions --- */

static const char WHAT_IS_FREE[] = "what is free";

static sifr_status ask_text(quickstart_answers *a, const char *question, const char *fallback,
                            const char **answer, sifr_error *error) {
    if (*answer) return SIFR_OK;
    if (a->asks) return quickstart_ask(a, question, fallback, answer, error);
    *answer = fallback;
    return SIFR_OK;
}

static sifr_status ask_data(quickstart_answers *a, sifr_error *error) {
    const char *path = NULL;
    if (a->data.count || !a->asks) return SIFR_OK;
    BASE_TRY(quickstart_ask(a, "Data: text, a token store or rows (a file, folder or pattern)",
                            NULL, &path, error));
    if (!path) return SIFR_OK;
    a->data.items = malloc(sizeof *a->data.items);
    if (!a->data.items) return base_fail_alloc(error, sizeof *a->data.items);
    a->data.items[a->data.count++] = path;
    return SIFR_OK;
}

/* Why a question comes again. */
static void say_reason(const char *message) {
    char shown[QUICKSTART_SHOWN];
    puts(quickstart_shown(message, shown));
}

/* What is known so far. */
static sifr_status check_ranks(int64_t ranks, sifr_error *error) {
    if (ranks <= CLI_RANK_LIMIT) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "--ranks: %lld is not in 1 to %d", (long long)ranks,
                     (int)CLI_RANK_LIMIT);
}

static sifr_status check_answers(const quickstart_answers *a, sifr_error *error) {
    BASE_TRY(quickstart_check_words(a, error));
    BASE_TRY(check_ranks(a->ranks, error));
    BASE_TRY(quickstart_check_output(a, error));
    return quickstart_check_run(a, error);
}

/* Asks until the answer goes with those that are there. */
static sifr_status ask_checked(quickstart_answers *a, const char *question, const char *fallback,
                               const char **answer, sifr_error *error) {
    bool asks = a->asks && !*answer;
    for (;;) {
        BASE_TRY(ask_text(a, question, fallback, answer, error));
        sifr_status status = check_answers(a, error);
        if (status != SIFR_USAGE || !asks) return status;
        say_reason(error->message);
        *answer = NULL;
    }
}

/* Asks for a number until it is one. */
static sifr_status ask_number(quickstart_answers *a, const char *question, const char *fallback,
                              sifr_status (*parse)(const char *text, const char *what, int64_t *out,
                                                   sifr_error *error),
                              const char *what, int64_t *out, sifr_error *error) {
    for (;;) {
        const char *text = NULL;
        BASE_TRY(quickstart_ask(a, question, fallback, &text, error));
        if (strcmp(text, WHAT_IS_FREE) == 0) return SIFR_OK;
        sifr_status status = parse(text, what, out, error);
        if (status == SIFR_OK && *out) return SIFR_OK;
        say_reason(status == SIFR_OK ? "0: give 1 or more" : error->message);
    }
}

static sifr_status parse_ranks(const char *text, const char *what, int64_t *out,
                               sifr_error *error) {
    BASE_TRY(base_parse_count(text, what, out, error));
    return check_ranks(*out, error);
}

static sifr_status ask_ranks(quickstart_answers *a, sifr_error *error) {
    if (!a->ranks && a->asks)
        BASE_TRY(ask_number(a, "Ranks: processes that share the work, one for each GPU", "1",
                            parse_ranks, "ranks", &a->ranks, error));
    if (!a->ranks) a->ranks = 1;
    return SIFR_OK;
}

static sifr_status ask_memory(quickstart_answers *a, sifr_error *error) {
    if (a->host_memory || !a->asks) return SIFR_OK;
    return ask_number(a, "Memory that the run may take, such as 16GiB", WHAT_IS_FREE,
                      base_parse_bytes, "memory", &a->host_memory, error);
}

static sifr_status refuse_missing(const quickstart_answers *a, sifr_error *error) {
    if (a->model && a->data.count) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "--%s is needed%s",
                     a->model ? "data PATH" : "model DIR: a model folder",
                     a->asks ? "" : "; questions are asked on a terminal alone");
}

/* --- the config before the plan --- */

/* At the model and so much of the data; of a config of its own, so that it can be done again. */
static sifr_status look_at(sifr_context *context, const quickstart_answers *a, size_t data,
                           quickstart_choice *choice, sifr_error *error) {
    sifr_config_free(choice->config);
    choice->config = NULL;
    BASE_TRY(sifr_config_create(&choice->config, error));
    BASE_TRY(sifr_config_set(choice->config, "model", a->model, error));
    for (size_t i = 0; i < data; i++)
        BASE_TRY(sifr_config_set(choice->config, "data", a->data.items[i], error));
    BASE_TRY(quickstart_pass(a, choice->config, error));
    choice->guess.size = sizeof choice->guess;
    return sifr_data_look(context, choice->config, &choice->guess, error);
}

/* What was asked for is asked for again where it cannot be used: the model before the data. */
static sifr_status ask_model(sifr_context *context, quickstart_answers *a,
                             quickstart_choice *choice, sifr_error *error) {
    for (bool asks = a->asks && !a->model;;) {
        BASE_TRY(ask_text(a, "Model folder", NULL, &a->model, error));
        if (!a->model || !a->asks) return SIFR_OK;
        sifr_status status = check_answers(a, error);
        if (status == SIFR_OK) status = look_at(context, a, 0, choice, error);
        if (status == SIFR_OK || !asks) return status;
        say_reason(error->message);
        a->model = NULL;
    }
}

static sifr_status ask_inputs(sifr_context *context, quickstart_answers *a,
                              quickstart_choice *choice, sifr_error *error) {
    bool asks = a->asks && !a->data.count;
    BASE_TRY(ask_model(context, a, choice, error));
    for (;;) {
        BASE_TRY(ask_data(a, error));
        BASE_TRY(refuse_missing(a, error));
        sifr_status status = check_answers(a, error);
        if (status == SIFR_OK) status = look_at(context, a, a->data.count, choice, error);
        if (status == SIFR_OK || !asks) return status;
        say_reason(error->message);
        cli_list_free(&a->data);
    }
}

static sifr_status ask_all(sifr_context *context, quickstart_answers *a, quickstart_choice *choice,
                           sifr_error *error) {
    BASE_TRY(check_answers(a, error));
    BASE_TRY(ask_inputs(context, a, choice, error));
    BASE_TRY(ask_checked(a, "What is learned: text, rows, preferences, labels or tags",
                         quickstart_kind_name(choice->guess.kind), &a->learn, error));
    BASE_TRY(ask_checked(a, "What is trained: all weights, or adapters beside them (all, lora)",
                         "all", &a->train, error));
    BASE_TRY(ask_ranks(a, error));
    BASE_TRY(ask_memory(a, error));
    BASE_TRY(ask_checked(a, "Config to write", "quickstart.json", &a->output, error));
    return quickstart_choose_run(a, error);
}

/* --- the plan --- */

static sifr_status plan_fit(sifr_context *context, const quickstart_answers *a, const char *nvme,
                            const quickstart_choice *choice, sifr_config **planned,
                            sifr_plan_figures *figures, sifr_error *error) {
    const sifr_plan_options options = {.size = sizeof options,
                                       .ranks = a->ranks,
                                       .ranks_per_host = a->ranks_per_host,
                                       .machine = a->machine,
                                       .device_memory = a->device_memory,
                                       .host_memory = a->host_memory,
                                       .nvme = nvme,
                                       .fit = true};
    sifr_plan *plan;
    BASE_TRY(sifr_plan_create(context, choice->config, &options, &plan, error));
    sifr_status status = sifr_plan_fit(plan, planned, error);
    if (status == SIFR_OK) sifr_plan_get(plan, figures);
    sifr_plan_free(plan);
    return status;
}

/* What does not fit in memory may go to a disk; a folder that helps nothing is removed again. */
static sifr_status plan_with_disk(sifr_context *context, quickstart_answers *a,
                                  const quickstart_choice *choice, sifr_config **planned,
                                  sifr_plan_figures *figures, sifr_error *error) {
    const char *folder = quickstart_beside(a, "-offload", error);
    if (!folder) return SIFR_NO_MEMORY;
    if (a->asks) say_reason(error->message);
    BASE_TRY(ask_text(a, "It does not fit in memory. A folder on a local disk for the rest", folder,
                      &a->nvme, error));
    bool there = base_is_directory(a->nvme);
    BASE_TRY(base_make_directories(a->nvme, error));
    sifr_status status = plan_fit(context, a, a->nvme, choice, planned, figures, error);
    if (status != SIFR_OK && !there) rmdir(a->nvme);
    return status;
}

/* The run's own folder has too little room, which another folder does not help. */
static bool is_of_output(const sifr_error *error) {
    static const char begin[] = "disk: ";
    return strncmp(error->message, begin, sizeof begin - 1) == 0;
}

static sifr_status plan(sifr_context *context, quickstart_answers *a,
                        const quickstart_choice *choice, sifr_config **planned,
                        sifr_plan_figures *figures, sifr_error *error) {
    sifr_status status = plan_fit(context, a, NULL, choice, planned, figures, error);
    if (status == SIFR_NO_MEMORY && !is_of_output(error))
        status = plan_with_disk(context, a, choice, planned, figures, error);
    if (status != SIFR_NO_MEMORY || strcmp(a->train, "lora") == 0 || !choice->guess.decoder)
        return status;
    char message[sizeof error->message];
    const char *says = error->message, *flag = "--fit: "; /* of `sifr plan` */
    if (strncmp(says, flag, strlen(flag)) == 0) says += strlen(flag);
    snprintf(message, sizeof message, "%s", says);
    return base_fail(error, SIFR_NO_MEMORY, "%s, or train adapters alone with --train lora",
                     message);
}

/* --- what is said --- */

static void say_data(const quickstart_answers *a, const quickstart_choice *choice) {
    char bytes[32], count[80], shown[QUICKSTART_SHOWN];
    printf("%-12s %s%s, %s%s%s%s: ", "data", quickstart_shown(a->data.items[0], shown),
           a->data.count > 1 ? " and others" : "",
           base_format_bytes((uint64_t)choice->guess.bytes, bytes),
           choice->guess.form ? " of the form " : "", choice->guess.form ? choice->guess.form : "",
           choice->guess.stores ? ", tokens" : "");
    if (!choice->counted)
        printf("too large to be counted here");
    else
        printf("%s", base_format_counted(choice->sequences,
                                         choice->kind == SIFR_DATA_PAIRS    ? "pair"
                                         : choice->kind == SIFR_DATA_STREAM ? "sequence"
                                                                            : "row",
                                         count));
    printf("\n%-12s %s, sequences of %lld tokens, %lld a step\n", "learns",
           quickstart_kind_name(choice->kind), (long long)choice->length, (long long)choice->batch);
}

static const char *format_time(double seconds, char out[32]) {
    if (seconds < 1)
        snprintf(out, 32, "less than a second");
    else if (seconds < 120)
        snprintf(out, 32, "%.0f s", seconds);
    else if (seconds < 7200)
        snprintf(out, 32, "%.0f minutes", seconds / 60);
    else if (seconds < 48 * 3600.0)
        snprintf(out, 32, "%.0f hours", seconds / 3600);
    else
        snprintf(out, 32, "%.0f days", seconds / 86400);
    return out;
}

/* The plan as the head of the file and as it is printed. */
static void plan_text(const quickstart_choice *choice, const sifr_plan_figures *f, char *out,
                      size_t size) {
    char need[32], may[32], disk[32], time[32], whole[96] = "", beside_it[64] = "", host[64] = "";
    char counted[80];
    double steps = (double)choice->sequences / (double)choice->batch * choice->epochs;
    if (choice->counted)
        snprintf(whole, sizeof whole, ", in all %s for %s",
                 format_time(steps * f->step_seconds, time),
                 base_format_counted(steps < 1 ? 1 : llround(fmin(steps, 1e18)), "step", counted));
    if (f->host_bytes)
        snprintf(host, sizeof host, ", %s of the host's memory",
                 base_format_bytes((uint64_t)f->host_bytes, disk));
    if (f->nvme_bytes)
        snprintf(beside_it, sizeof beside_it, " and %s on disk",
                 base_format_bytes((uint64_t)f->nvme_bytes, disk));
    snprintf(out, size, "a rank takes %s of the %s that it may take%s%s; predicted %.3g s a step%s",
             base_format_bytes((uint64_t)f->bytes, need),
             f->room_bytes == INT64_MAX ? "memory"
                                        : base_format_bytes((uint64_t)f->room_bytes, may),
             host, beside_it, f->step_seconds, whole);
}

static void command_text(const quickstart_answers *a, char *out, size_t size) {
    char ranks[48] = "", quoted[BASE_QUOTED];
    bool hosts = a->ranks_per_host && a->ranks_per_host < a->ranks;
    if (a->ranks > 1)
        snprintf(ranks, sizeof ranks, " --ranks %lld%s", (long long)a->ranks,
                 hosts ? " --hostfile HOSTS" : "");
    snprintf(out, size, "sifr train --config %s%s", base_quote(a->output, quoted, sizeof quoted),
             ranks);
}

static sifr_status write_it(const quickstart_answers *a, const quickstart_choice *choice,
                            const sifr_config *planned, const sifr_plan_figures *figures,
                            sifr_error *error) {
    char says[320], command[BASE_QUOTED + 96], head[BASE_QUOTED + 768], shown[QUICKSTART_SHOWN];
    plan_text(choice, figures, says, sizeof says);
    command_text(a, command, sizeof command);
    snprintf(head, sizeof head,
             QUICKSTART_MADE
             ". It is DeepSpeed's JSON with comments; docs/config.md has "
             "all keys, and `sifr train --config FILE --dry-run` says what each does.\nRun it "
             "with: %s\nThe plan: %s.",
             command, says);
    BASE_TRY(quickstart_write(choice, planned, a->ranks, head, a->output, error));
    say_data(a, choice);
    printf("%-12s %s\n%-12s %s: run it with\n%-12s %s\n", "plan", says, "config",
           quickstart_shown(a->output, shown), "", command);
    printf("%-12s in %s\n", "result", quickstart_shown(a->run, shown));
    return SIFR_OK;
}

/* --- the command --- */

/* A warning comes of the look at the data, and of each plan. */
typedef struct told_warnings {
    char line[8][SIFR_ERROR_LENGTH];
    int count;
} told_warnings;

static void log_warning(void *user, sifr_log_level level, const char *line) {
    told_warnings *told = user;
    if (level < SIFR_LOG_WARNING) return;
    for (int i = 0; i < told->count; i++)
        if (strcmp(told->line[i], line) == 0) return;
    if (told->count < (int)(sizeof told->line / sizeof *told->line))
        snprintf(told->line[told->count++], sizeof *told->line, "%s", line);
    fprintf(stderr, "sifr quickstart: warning: %s\n", line);
}

static sifr_status quickstart_with(sifr_context *context, quickstart_answers *a,
                                   quickstart_choice *choice, sifr_error *error) {
    sifr_config *planned = NULL;
    sifr_plan_figures figures = {.size = sizeof figures};
    BASE_TRY(ask_all(context, a, choice, error));
    BASE_TRY(quickstart_choose(context, a, choice, error));
    BASE_TRY(plan(context, a, choice, &planned, &figures, error));
    sifr_status status = write_it(a, choice, planned, &figures, error);
    sifr_config_free(planned);
    return status;
}

static int quickstart(quickstart_answers *a) {
    told_warnings told = {.count = 0};
    const sifr_context_options options = {.size = sizeof options,
                                          .log = {.write = log_warning, .user = &told}};
    sifr_context *context = NULL;
    quickstart_choice choice = {0};
    sifr_error error = {0};
    sifr_status status = sifr_context_create(&options, &context, &error);
    if (status == SIFR_OK) status = quickstart_with(context, a, &choice, &error);
    sifr_config_free(choice.config);
    sifr_context_free(context);
    return status == SIFR_OK ? SIFR_OK : cli_fail(name, &error);
}

/* Numbers begin at -1, so that a 0 that was given is told from none. */
enum { NUMBERS = 5 };

static int64_t *number_at(quickstart_answers *a, int index, const char **option) {
    static const char *const names[NUMBERS] = {"seq-length", "ranks", "ranks-per-host",
                                               "host-memory", "device-memory"};
    int64_t *const values[NUMBERS] = {&a->length, &a->ranks, &a->ranks_per_host, &a->host_memory,
                                      &a->device_memory};
    if (option) *option = names[index];
    return values[index];
}

static void begin_numbers(quickstart_answers *a) {
    for (int i = 0; i < NUMBERS; i++) *number_at(a, i, NULL) = -1;
}

/* From here on 0 means that there is none. */
static bool check_numbers(quickstart_answers *a, int *code) {
    for (int i = 0; i < NUMBERS; i++) {
        const char *option;
        int64_t *value = number_at(a, i, &option);
        if (*value == 0) {
            *code =
                cli_fail_with(name, SIFR_USAGE,
                              "--%s 0: give 1 or more, or leave it out for the default", option);
            return false;
        }
        if (*value < 0) *value = 0;
    }
    return true;
}

int cli_quickstart(int argc, char **argv) {
    quickstart_answers answers = {0};
    cli_option options[OPTIONS];
    bool yes = false;
    int code;
    make_options(&answers, &yes, options);
    begin_numbers(&answers);
    if (!cli_parse(&usage, options, OPTIONS, argc, argv, NULL, &code)) return code;
    if (!check_numbers(&answers, &code)) {
        quickstart_free(&answers);
        return code;
    }
    answers.asks = !yes && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    code = quickstart(&answers);
    quickstart_free(&answers);
    return code;
}
