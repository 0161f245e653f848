#include "cli/commands.h"
#include "cli/options.h"

int cli_doctor(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "doctor",
        .summary = "Says what this machine has for training, what is missing, and what to do.",
        .example = "sifr doctor --json",
    };
    bool json = false;
    const cli_option options[] = {
        {"json", CLI_FLAG, NULL, "print one JSON object", &json, NULL, false},
    };
    int code;
    if (!cli_parse(&usage, options, 1, argc, argv, NULL, &code)) return code;
    return cli_fail_with("doctor", SIFR_FAILED, "not built");
}
