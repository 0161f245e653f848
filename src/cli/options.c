#include "cli/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/system.h"
#include "base/text.h"
#include "cli/help.h"
#include "cli/option_table.h"

enum { CODE_OPERAND = 1, CODE_HELP = 2, CODE_OPTION = 256 };

/* Such a limit may refuse what the check before a run knew nothing of. */
static const char *limit_words(sifr_status status, const char *message) {
    base_system system;
    if (status != SIFR_NO_MEMORY || strstr(message, "ulimit")) return "";
    base_system_read(&system);
    if (system.process_left == 0) return "";
    return "; ulimit (-d, -v) limits this process, and counts what is mapped, touched or not: "
           "raise it";
}

int cli_fail_with(const char *name, sifr_status status, const char *format, ...) {
    char *message = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&message, format, arguments) < 0) message = NULL;
    va_end(arguments);
    /* Of words as they were given, a terminal would act on what is no text. */
    for (char *c = message; c && *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = ' ';
    fflush(stdout);
    /* One write: other ranks share standard error, and their words would come between two. */
    const char *line = message ? message : format;
    fprintf(stderr, "sifr%s%s: %s%s\n", name[0] ? " " : "", name, line, limit_words(status, line));
    free(message);
    return (int)status;
}

int cli_fail(const char *name, const sifr_error *error) {
    sifr_status status = error->status == SIFR_OK ? SIFR_FAILED : error->status;
    return cli_fail_with(name, status, "%s", error->message);
}

static void write_log_line(void *user, sifr_log_level level, const char *line) {
    if (level == SIFR_LOG_DEBUG) return;
    fflush(stdout);
    fprintf(stderr, "sifr %s: %s%s\n", (const char *)user,
            level == SIFR_LOG_WARNING ? "warning: " : "", line);
}

sifr_log cli_log(const char *name) {
    return (sifr_log){.write = write_log_line, .user = (void *)(uintptr_t)name};
}

sifr_status cli_context(const char *name, sifr_context **out, sifr_error *error) {
    sifr_context_options options = {.size = sizeof options, .log = cli_log(name)};
    return sifr_context_create(&options, out, error);
}

void cli_list_free(cli_list *list) {
    free(list->items);
    *list = (cli_list){0};
}

static bool append(cli_list *list, const char *word, int argc) {
    if (!list->items) list->items = calloc((size_t)argc + 1, sizeof *list->items);
    if (!list->items) return false;
    list->items[list->count++] = word;
    return true;
}

static sifr_status store(const cli_option *option, const char *text, sifr_error *error) {
    char what[96];
    snprintf(what, sizeof what, "--%s", option->name);
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)option->value = true;
        return SIFR_OK;
    case CLI_SWITCH:
        *(const char **)option->value = text ? text : "";
        return SIFR_OK;
    case CLI_TEXT:
        *(const char **)option->value = text;
        return SIFR_OK;
    case CLI_COUNT:
        return base_parse_count(text, what, option->value, error);
    case CLI_BYTES:
        return base_parse_bytes(text, what, option->value, error);
    case CLI_NUMBER:
        return base_parse_double(text, what, option->value, error);
    case CLI_LIST: /* cli_parse appends */
    case CLI_GROUP:
        break;
    }
    return SIFR_OK;
}

/* Whether the option ends in "-NAME". */
static bool ends_in(const char *option, const char *name) {
    size_t length = strlen(option), size = strlen(name);
    return length > size && option[length - size - 1] == '-' &&
           strcmp(option + length - size, name) == 0;
}

/* The option that is meant by a name that is none: by other programs' name of it, as its last or
 * its first words, or by a slip; NULL: not known. */
static const char *find_meant(const char *name, const char *const *names, size_t count) {
    static const char *const others[][2] = {
        {"lr", "learning-rate"},          {"max-length", "seq-length"},
        {"max-seq-length", "seq-length"}, {"loss-type", "preference"},
        {"output-dir", "output"},         {"model-name-or-path", "model"},
        {"dataset-name", "data"},         {"num-epochs", "num-train-epochs"},
        {"rpo-alpha", "preference"},      {"num-processes", "ranks"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (size_t n = 0; strcmp(name, others[i][0]) == 0 && n < count; n++)
            if (strcmp(names[n], others[i][1]) == 0) return names[n];
    for (size_t n = 0; name[0] && n < count; n++)
        if (ends_in(names[n], name)) return names[n];
    for (size_t n = 0; name[0] && n < count; n++)
        if (strncmp(names[n], name, strlen(name)) == 0) return names[n];
    return base_nearest(name, names, count);
}

/* The word with the option that was read last. */
static const char *last_word(char **argv) {
    return argv[optind - (argv[optind - 1] == optarg ? 2 : 1)];
}

/* Whether the word that was read has the option's whole name. getopt_long also takes its first
 * letters, by which --lr would be --lr-scheduler-type. */
static bool is_whole(const cli_option *option, const char *word) {
    size_t length = strlen(option->name);
    return strncmp(word, "--", 2) == 0 && strncmp(word + 2, option->name, length) == 0 &&
           (!word[2 + length] || word[2 + length] == '=');
}

/* Explains why getopt_long refused `word`: it is unknown or ambiguous, lacks a value, or has one
 * that it does not take. */
static int refuse_option(const cli_usage *usage, const cli_option *options, size_t count,
                         const char *word, int code) {
    char name[64];
    const char *bare = word + strspn(word, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(bare, "="), bare);
    if (code == ':')
        return cli_fail_with(usage->name, SIFR_USAGE, "--%s needs a value; see `sifr %s --help`",
                             name, usage->name);
    const char *names[128];
    size_t known = 0, alike = 0;
    for (size_t i = 0; i < count && known < 128; i++) {
        if (options[i].kind == CLI_GROUP) continue;
        names[known++] = options[i].name;
        if (strcmp(options[i].name, name) == 0)
            return cli_fail_with(usage->name, SIFR_USAGE, "--%s takes no value; write it alone",
                                 name);
        if (strncmp(word, "--", 2) == 0 && strncmp(options[i].name, name, strlen(name)) == 0)
            alike++;
    }
    if (alike > 1)
        return cli_fail_with(
            usage->name, SIFR_USAGE,
            "--%s: several options begin with this; write the whole name; see `sifr %s --help`",
            name, usage->name);
    for (char *c = name; *c; c++) {
        if (*c == '_') *c = '-';
    }
    const char *nearest = find_meant(name, names, known);
    bool stands_alone =
        usage->operands && (strstr(usage->operands, "DEST") || strstr(usage->operands, "OUT"));
    if (!nearest && stands_alone && strcmp(name, "output") == 0)
        return cli_fail_with(usage->name, SIFR_USAGE,
                             "unknown option --output: give the path alone: sifr %s [OPTION]… %s",
                             usage->name, usage->operands);
    if (nearest)
        return cli_fail_with(usage->name, SIFR_USAGE, "unknown option %.*s: did you mean --%s?",
                             (int)strcspn(word, "="), word, nearest);
    return cli_fail_with(usage->name, SIFR_USAGE, "unknown option %s; see `sifr %s --help`", word,
                         usage->name);
}

static bool is_free(const cli_option *options, size_t count, const bool *seen, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (options[i].kind != CLI_GROUP && strcmp(options[i].name, name) == 0) return !seen[i];
    return false;
}

/* A word alone, where a command has options only; other commands take a model's folder so. */
static int refuse_word(const cli_usage *usage, const cli_option *options, size_t count,
                       const bool *seen, const char *word) {
    const char *end = strrchr(word, '.'), *meant = NULL;
    if (base_is_directory(word) && is_free(options, count, seen, "model")) meant = "model";
    if (base_is_file(word) && end && strcmp(end, ".json") == 0 &&
        is_free(options, count, seen, "config"))
        meant = "config";
    if (meant)
        return cli_fail_with(usage->name, SIFR_USAGE,
                             "`%s` belongs to no option: did you mean `--%s %s`?", word, meant,
                             word);
    return cli_fail_with(usage->name, SIFR_USAGE, "`%s` belongs to no option; see `sifr %s --help`",
                         word, usage->name);
}

static int require(const cli_usage *usage, const cli_option *options, size_t count,
                   const bool *seen) {
    for (size_t i = 0; i < count; i++) {
        if (options[i].required && !seen[i])
            return cli_fail_with(usage->name, SIFR_USAGE, "--%s %s is needed; see `sifr %s --help`",
                                 options[i].name, options[i].argument, usage->name);
    }
    return 0;
}

/* The table for getopt_long, without headings; it has room for "help" and the end. */
static void make_table(const cli_option *options, size_t count, struct option *table) {
    for (size_t i = 0; i < count; i++) {
        const cli_option *o = &options[i];
        if (o->kind == CLI_GROUP) continue;
        int takes = o->kind == CLI_FLAG     ? no_argument
                    : o->kind == CLI_SWITCH ? optional_argument
                                            : required_argument;
        *table++ = (struct option){o->name, takes, NULL, CODE_OPTION + (int)i};
    }
    *table = (struct option){"help", no_argument, NULL, CODE_HELP};
}

bool cli_parse(const cli_usage *usage, const cli_option *options, size_t option_count, int argc,
               char **argv, cli_list *operands, int *exit_code) {
    struct option *table = calloc(option_count + 2, sizeof *table);
    bool *seen = calloc(option_count + 1, sizeof *seen);
    sifr_error error = {0};
    int code = 0;
    bool go_on = false;
    cli_list *open = NULL; /* the list that takes the next words */
    *exit_code = 0;
    if (cli_table_wanted(argc, argv)) {
        cli_table_print(usage, options, option_count, argc, argv);
        goto done;
    }
    if (!table || !seen) {
        *exit_code = cli_fail_with(usage->name, SIFR_NO_MEMORY, "out of memory");
        goto done;
    }
    make_table(options, option_count, table);

    /* "-": words are returned in order, so that those after --data belong to it. ":": a missing
     * value is distinguished from an unknown option. Messages are our own. */
    opterr = 0;
    optind = 0;
    while ((code = getopt_long(argc, argv, "-:h", table, NULL)) != -1) {
        if (code == CODE_HELP || code == 'h') {
            cli_print_help(usage, options, option_count);
            goto done;
        }
        if (code == '?' || code == ':') {
            /* One letter, perhaps one of several after a single dash; otherwise the whole word. */
            char letter[3] = {'-', (char)optopt, '\0'};
            const char *word = optopt > 0 && optopt < CODE_OPTION ? letter : argv[optind - 1];
            *exit_code = refuse_option(usage, options, option_count, word, code);
            goto done;
        }
        cli_list *list = open ? open : operands;
        if (code >= CODE_OPTION) {
            const cli_option *option = &options[code - CODE_OPTION];
            if (!is_whole(option, last_word(argv))) {
                *exit_code = refuse_option(usage, options, option_count, last_word(argv), '?');
                goto done;
            }
            seen[code - CODE_OPTION] = true;
            if (option->given) *option->given = true;
            open = list = option->kind == CLI_LIST ? option->value : NULL;
            if (store(option, optarg, &error) != SIFR_OK) {
                *exit_code = cli_fail(usage->name, &error);
                goto done;
            }
            if (!list) continue;
        }
        if (!list) {
            *exit_code = refuse_word(usage, options, option_count, seen, optarg);
            goto done;
        }
        if (!append(list, optarg, argc)) {
            *exit_code = cli_fail_with(usage->name, SIFR_NO_MEMORY, "out of memory");
            goto done;
        }
    }
    for (; optind < argc; optind++) { /* behind "--" */
        if (!operands || !append(operands, argv[optind], argc)) {
            *exit_code = refuse_word(usage, options, option_count, seen, argv[optind]);
            goto done;
        }
    }
    *exit_code = require(usage, options, option_count, seen);
    go_on = *exit_code == 0;

done:
    free(table);
    free(seen);
    if (!go_on) {
        if (operands) cli_list_free(operands);
        for (size_t i = 0; i < option_count; i++) {
            if (options[i].kind == CLI_LIST) cli_list_free(options[i].value);
        }
    }
    return go_on;
}

static void print_commands(const char *parent, const cli_command *commands, size_t count,
                           FILE *stream) {
    fprintf(stream, "Usage: sifr%s%s COMMAND [OPTION]…\n\n", parent[0] ? " " : "", parent);
    for (size_t i = 0; i < count; i++)
        fprintf(stream, "  %-10s  %s\n", commands[i].name, commands[i].summary);
    fprintf(stream, "\n`sifr%s%s COMMAND --help` shows a command's options and an example.\n",
            parent[0] ? " " : "", parent);
    if (stream != stdout) return;
    if (!parent[0]) cli_print_program_options();
    cli_print_exit_codes();
}

int cli_run_command(const char *parent, const cli_command *commands, size_t count, int argc,
                    char **argv) {
    if (argc < 2) {
        print_commands(parent, commands, count, stderr);
        return SIFR_USAGE;
    }
    const char *name = argv[1], *names[64];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_commands(parent, commands, count, stdout);
        return SIFR_OK;
    }
    if (cli_table_wanted(argc, argv)) {
        cli_table_print_all(parent, commands, count, argc, argv);
        return SIFR_OK;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(commands[i].name, name) == 0) return commands[i].run(argc - 1, argv + 1);
    }
    size_t known = count < 64 ? count : 64;
    for (size_t i = 0; i < known; i++) names[i] = commands[i].name;
    const char *nearest = base_nearest(name, names, known);
    const char *what = name[0] == '-' ? "option" : "command";
    const char *space = parent[0] ? " " : "";
    if (nearest && name[0] != '-')
        return cli_fail_with(parent, SIFR_USAGE, "unknown %s `%s`: did you mean `sifr%s%s %s`?",
                             what, name, space, parent, nearest);
    return cli_fail_with(parent, SIFR_USAGE, "unknown %s `%s`; `sifr%s%s --help` lists them", what,
                         name, space, parent);
}
