#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/launch/hangup.h"
#include "cli/options.h"
#include "cli/truncation.h"
#include "sifr/version.h"

static const cli_command commands[] = {
    {"train", "train a model on text or token stores", cli_train},
    {"init", "make a model folder with random weights", cli_init},
    {"export", "make a model folder from a checkpoint", cli_export},
    {"eval", "mean loss and perplexity of a model over a text", cli_eval},
    {"generate", "continue a text", cli_generate},
    {"plan", "say what a training step will take and do, without running it", cli_plan},
    {"doctor", "say what this machine has, and what is missing", cli_doctor},
    {"inspect", "say what a model folder, token store or checkpoint holds", cli_inspect},
    {"bench", "measure what these machines can do", cli_bench},
    {"tokenizer", "train a tokenizer, encode and decode text", cli_tokenizer},
    {"tokenize", "make a token store of text", cli_tokenize},
};

int main(int argc, char **argv) {
    int code;
    cli_keep_hangup_ignored();
    cli_catch_truncation();
    if (argc == 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        printf("sifr %s\n", sifr_version());
        code = SIFR_OK;
    } else {
        code = cli_run_command("", commands, sizeof commands / sizeof commands[0], argc, argv);
    }
    /* Results that could not be written are no results. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == SIFR_OK)
        code = cli_fail_with("", SIFR_FAILED, "standard output: writing failed");
    return code;
}
