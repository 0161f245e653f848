#include "cli/commands.h"
#include "cli/first_process.h"
#include "cli/options.h"
#include "cli/standard_output.h"
#include "cli/truncation.h"
#include "cli/version_text.h"

static const cli_command commands[] = {
    {"quickstart", "make a config that fits, by questions or options", cli_quickstart},
    {"train", "train a model on text or token stores", cli_train},
    {"init", "make a model folder with random weights", cli_init},
    {"export", "make a model folder from a checkpoint", cli_export},
    {"merge", "put an adapter into the weights of its base", cli_merge},
    {"unmerge", "take a merged adapter out again", cli_unmerge},
    {"import", "make a config of another program's", cli_import},
    {"eval", "compute a model's mean loss and perplexity over a text", cli_eval},
    {"score", "write the log-probabilities that a model gives the tokens of a text", cli_score},
    {"generate", "continue a text", cli_generate},
    {"chat", "talk with a chat model", cli_chat},
    {"classify", "say what a classifier makes of texts", cli_classify},
    {"plan", "predict a training step's memory, time and traffic without running it", cli_plan},
    {"doctor", "report what this machine has and what is missing", cli_doctor},
    {"report", "make a page with the curves of runs", cli_report},
    {"log", "send a run to MLflow's server", cli_log_command},
    {"watch", "follow a run in the terminal", cli_watch},
    {"inspect", "show the contents of a model folder, token store or checkpoint", cli_inspect},
    {"bench", "measure these machines", cli_bench},
    {"data", "look at rows to fine-tune on, as a model reads them", cli_data},
    {"tokenizer", "train a tokenizer, encode and decode text", cli_tokenizer},
    {"tokenize", "make a token store from text", cli_tokenize},
};

int main(int argc, char **argv) {
    int code;
    cli_begin_output();
    cli_catch_truncation();
    cli_end_as_others_do();
    if (!cli_version_asked(argc, argv, &code))
        code = cli_run_command("", commands, sizeof commands / sizeof commands[0], argc, argv);
    /* A failed write of the results is a failed command. */
    if (!cli_output_is_written() && code == SIFR_OK)
        code = cli_fail_with("", SIFR_FAILED, "standard output: writing failed");
    return code;
}
