/* The subcommands. Each has its own file, cmd_<name>.c, and a row in main.c. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

/* argv[0] is the command's own name; the result is the program's exit code (sifr/status.h). */
typedef struct cli_command {
    const char *name;
    const char *summary; /* for `sifr --help` */
    int (*run)(int argc, char **argv);
} cli_command;

int cli_bench(int argc, char **argv);
int cli_chat(int argc, char **argv);
int cli_classify(int argc, char **argv);
int cli_data(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_init(int argc, char **argv);
int cli_export(int argc, char **argv);
int cli_import(int argc, char **argv);
int cli_eval(int argc, char **argv);
int cli_generate(int argc, char **argv);
int cli_inspect(int argc, char **argv);
int cli_log_command(int argc, char **argv);
int cli_merge(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_score(int argc, char **argv);
int cli_tokenize(int argc, char **argv);
int cli_tokenizer(int argc, char **argv);
int cli_plan(int argc, char **argv);
int cli_quickstart(int argc, char **argv);
int cli_unmerge(int argc, char **argv);
int cli_train(int argc, char **argv);
int cli_watch(int argc, char **argv);

#endif
