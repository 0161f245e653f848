#include "cli/option_table.h"

#include <stdio.h>
#include <string.h>

#include "cli/help.h"

static const char word[] = "--help=table";

bool cli_table_wanted(int argc, char **argv) {
    return argc > 1 && strcmp(argv[1], word) == 0;
}

/* In one line, and without what separates fields. */
static void print_line(const char *text, const char *end) {
    for (; *text; text++) putchar(*text == '\n' || *text == '\t' ? ' ' : *text);
    fputs(end, stdout);
}

static void print_option(const cli_option *option) {
    const char *kind = option->kind == CLI_FLAG     ? "flag"
                       : option->kind == CLI_SWITCH ? "switch"
                       : option->kind == CLI_LIST   ? "list"
                                                    : "value";
    char sentence[1024];
    cli_sentence(option->help, sentence, sizeof sentence);
    printf("option\t%s\t%s\t%s\t%s\t", option->name, kind, option->argument ? option->argument : "",
           option->required ? "needed" : "");
    print_line(sentence, "\n");
}

static void print_examples(const char *example) {
    char line[1024];
    for (const char *at = example; *at;) {
        size_t length = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, at);
        printf("example\t");
        print_line(line, "\n");
        at += length + (at[length] == '\n');
    }
}

void cli_table_print(const cli_usage *usage, const cli_option *options, size_t count, int argc,
                     char **argv) {
    printf("command\t%s\t", usage->name);
    print_line(argc > 2 ? argv[2] : usage->summary, "\t");
    print_line(usage->operands ? usage->operands : "", "\nabout\t");
    print_line(usage->summary, "\n");
    for (size_t i = 0; i < count; i++) {
        if (options[i].kind == CLI_GROUP)
            printf("heading\t%s\n", options[i].name);
        else
            print_option(&options[i]);
    }
    print_option(&(cli_option){"help", CLI_FLAG, NULL, CLI_HELP_TEXT, NULL, NULL, false});
    print_examples(usage->example);
}

static void print_program(void) {
    const char *code, *meaning;
    cli_option option;
    for (size_t i = 0; cli_program_option_at(i, &option); i++) print_option(&option);
    for (size_t i = 0; cli_exit_code_at(i, &code, &meaning); i++)
        printf("exit\t%s\t%s\n", code, meaning);
}

void cli_table_print_all(const char *parent, const cli_command *commands, size_t count, int argc,
                         char **argv) {
    printf("commands\t%s\t%s\n", parent, argc > 2 ? argv[2] : "");
    if (!parent[0]) print_program();
    for (size_t i = 0; i < count; i++) {
        char name[64], table[sizeof word], summary[256];
        char *words[] = {name, table, summary, NULL};
        snprintf(name, sizeof name, "%s", commands[i].name);
        memcpy(table, word, sizeof word);
        snprintf(summary, sizeof summary, "%s", commands[i].summary);
        commands[i].run(3, words);
    }
}
