#include "cli/help.h"

#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Texts stand beside names up to this width, and below longer ones. */
enum { NAME_LIMIT = 24, COLUMNS = 80, COLUMNS_LEAST = 40 };

int cli_terminal_columns(FILE *stream) {
    struct winsize size = {0};
    if (!isatty(fileno(stream)) || ioctl(fileno(stream), TIOCGWINSZ, &size) != 0) return COLUMNS;
    return size.ws_col == 0 ? COLUMNS : size.ws_col;
}

int cli_columns(FILE *stream) {
    int columns = cli_terminal_columns(stream);
    return columns < COLUMNS_LEAST ? COLUMNS_LEAST : columns;
}

void cli_option_shape(const cli_option *o, char *out, size_t size) {
    const char *argument = o->argument ? o->argument : "";
    if (o->kind == CLI_SWITCH)
        snprintf(out, size, "--%s[=%s]", o->name, argument);
    else
        snprintf(out, size, "--%s%s%s%s", o->name, o->argument ? " " : "", argument,
                 o->kind == CLI_LIST ? "..." : "");
}

/* Columns of UTF-8 text: bytes that begin a character. */
static int width_of(const char *text, size_t length) {
    int width = 0;
    for (size_t i = 0; i < length; i++) width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

/* Bytes up to the next place where a line may break: a space; in a command only a space before an
 * option, since other spaces may be in quotes. */
static size_t piece(const char *text, bool command) {
    const char *option = command ? strstr(text, " --") : NULL;
    if (command) return option ? (size_t)(option - text) : strlen(text);
    return strcspn(text, " \n");
}

/* Prints text wrapped at `columns`, starting in column `at`. Further lines are indented by `indent`
 * spaces; in a command, a broken line ends with a backslash. */
static void wrap(const char *text, int indent, int at, int columns, bool command) {
    const char *broken = command ? " \\" : "";
    bool begun = false;
    while (*(text += strspn(text, " \n"))) {
        size_t length = piece(text, command);
        int width = width_of(text, length);
        if (begun && at + 1 + width + (int)strlen(broken) >= columns) {
            printf("%s\n%*s", broken, indent, "");
            at = indent;
        } else if (begun) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)length, text);
        at += width;
        begun = true;
        text += length;
    }
    putchar('\n');
}

void cli_sentence(const char *text, char *out, size_t size) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    size_t length = strlen(text), word = strspn(text, letters);
    bool plain = word > 0 && (text[word] == ' ' || text[word] == '\0');
    bool ended = length > 0 && strchr(".!?", text[length - 1]);
    snprintf(out, size, "%s%s", text, ended ? "" : ".");
    if (plain) out[0] = (char)(out[0] - 'a' + 'A');
}

static void print_sentence(const char *text, int indent, int columns) {
    char sentence[1024];
    cli_sentence(text, sentence, sizeof sentence);
    wrap(sentence, indent, indent, columns, false);
}

static void print_usage(const cli_usage *usage, const cli_option *options, size_t count,
                        int columns) {
    char text[1024], shape[96];
    size_t used = (size_t)snprintf(text, sizeof text, "Usage: sifr %s", usage->name);
    for (size_t i = 0; i < count && used < sizeof text; i++) {
        if (!options[i].required) continue;
        cli_option_shape(&options[i], shape, sizeof shape);
        used += (size_t)snprintf(text + used, sizeof text - used, " %s", shape);
    }
    if (used < sizeof text)
        snprintf(text + used, sizeof text - used, "%s%s%s", count ? " [OPTION]…" : "",
                 usage->operands ? " " : "", usage->operands ? usage->operands : "");
    wrap(text, 4, 0, columns, false);
    putchar('\n');
}

static void print_option(const char *shape, const char *help, int width, int columns) {
    int used = printf("  %s", shape);
    if (used > width + 2) used = (putchar('\n'), 0);
    printf("%*s", width + 4 - used, "");
    print_sentence(help, width + 4, columns);
}

static void print_options(const cli_option *options, size_t count, int columns) {
    int width = 6;
    char shape[96];
    for (size_t i = 0; i < count; i++) {
        if (options[i].kind == CLI_GROUP) continue;
        cli_option_shape(&options[i], shape, sizeof shape);
        int length = (int)strlen(shape);
        if (length <= NAME_LIMIT && length > width) width = length;
    }
    if (count == 0 || options[0].kind != CLI_GROUP) puts("Options:");
    for (size_t i = 0; i < count; i++) {
        if (options[i].kind == CLI_GROUP) {
            printf("%s%s:\n", i ? "\n" : "", options[i].name);
            continue;
        }
        cli_option_shape(&options[i], shape, sizeof shape);
        print_option(shape, options[i].help, width, columns);
    }
    print_option("--help", CLI_HELP_TEXT, width, columns);
}

/* One command a line; a long one is continued with a backslash, so that a shell accepts it. */
static void print_example(const char *example, int columns) {
    char line[1024];
    puts("\nExample:");
    for (const char *at = example; *at;) {
        size_t length = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, at);
        printf("  ");
        wrap(line, 6, 2, columns, true);
        at += length + (at[length] == '\n');
    }
}

bool cli_program_option_at(size_t index, cli_option *out) {
    static const cli_option rows[] = {
        {"help", CLI_FLAG, NULL, CLI_HELP_TEXT, NULL, NULL, false},
        {"version", CLI_FLAG, NULL, "Prints the version.", NULL, NULL, false},
        {"verbose", CLI_FLAG, NULL,
         "With --version, for a report of a fault: also the commit, how and of what this program "
         "was built, and where it runs.",
         NULL, NULL, false}};
    if (index >= sizeof rows / sizeof *rows) return false;
    *out = rows[index];
    return true;
}

void cli_print_program_options(void) {
    char shape[96];
    cli_option option;
    puts("\nOptions:");
    for (size_t i = 0; cli_program_option_at(i, &option); i++) {
        cli_option_shape(&option, shape, sizeof shape);
        print_option(shape, option.help, 9, cli_columns(stdout));
    }
}

bool cli_exit_code_at(size_t index, const char **code, const char **meaning) {
    static const char *const rows[][2] = {
        {"0", "done"},
        {"1", "failed: a file, the system or the data"},
        {"2", "wrong usage, config or model description"},
        {"3", "does not fit in memory or on disk"},
        {"4", "a rank is lost, or a collective hangs"},
        {"129, 130, 143", "stopped by SIGHUP, SIGINT or SIGTERM; train saves first"},
        {"138, 140", "stopped by SIGUSR1 or SIGUSR2; train saves first"}};
    if (index >= sizeof rows / sizeof *rows) return false;
    *code = rows[index][0];
    *meaning = rows[index][1];
    return true;
}

void cli_print_exit_codes(void) {
    const char *code, *meaning;
    puts("\nExit codes:");
    for (size_t i = 0; cli_exit_code_at(i, &code, &meaning); i++) {
        printf("  %-15s", code);
        wrap(meaning, 17, 17, cli_columns(stdout), false);
    }
}

void cli_print_help(const cli_usage *usage, const cli_option *options, size_t count) {
    int columns = cli_columns(stdout);
    print_usage(usage, options, count, columns);
    wrap(usage->summary, 0, 0, columns, false);
    putchar('\n');
    print_options(options, count, columns);
    print_example(usage->example, columns);
    cli_print_exit_codes();
}
