/* The parts of `sifr quickstart`: answers, the config that follows from them, and the file that
 * says why each key is there. */
#ifndef CLI_QUICKSTART_H
#define CLI_QUICKSTART_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"
#include "cli/options.h"
#include "sifr/config.h"
#include "sifr/data.h"
#include "sifr/plan.h"

/* A text that lives as long as the answers. */
typedef struct quickstart_kept {
    struct quickstart_kept *next;
    char text[];
} quickstart_kept;

/* Template and columns, as flags of `sifr train`. */
enum { QUICKSTART_PASSED = 3 };

/* As flags, or asked for. NULL and 0: not given. */
typedef struct quickstart_answers {
    const char *model, *learn, *train, *device, *machine, *nvme, *output, *run;
    const char *epochs, *rate;
    const char *passed[QUICKSTART_PASSED]; /* keys that go into the config as they are */
    cli_list data, fields, ignored;        /* fields: of rows, as those flags of `sifr train` */
    int64_t ranks, ranks_per_host, device_memory, host_memory, length;
    bool asks; /* there is a person to ask */
    quickstart_kept *kept;
} quickstart_answers;

/* A copy of the first `length` bytes with `ending` behind them; NULL: no memory. */
const char *quickstart_keep(quickstart_answers *answers, const char *text, size_t length,
                            const char *ending, sifr_error *error);
void quickstart_free(quickstart_answers *answers);

/* --- questions (quickstart_ask.c) --- */

/* A text from outside as a terminal may have it; returns out. */
enum { QUICKSTART_SHOWN = 4 * BASE_PATH_LENGTH + 1024 };
const char *quickstart_shown(const char *text, char out[QUICKSTART_SHOWN]);

/* Asks with the default in brackets, and reads a line into *answer, which `answers` keep; an empty
 * line is the default; where there is none, the question comes again. SIFR_USAGE where the input
 * ends. */
sifr_status quickstart_ask(quickstart_answers *answers, const char *question, const char *fallback,
                           const char **answer, sifr_error *error) SIFR_MUST_CHECK;

/* --- the config (quickstart_choose.c) --- */

enum { QUICKSTART_NOTES = 48 };

/* Why a key is in the config. */
typedef struct quickstart_note {
    const char *path;
    char text[224];
} quickstart_note;

typedef struct quickstart_choice {
    sifr_config *config;
    sifr_data_guess guess;
    sifr_data_kind kind; /* what is learned */
    bool counted;        /* the data were read: */
    int64_t sequences;   /* of an epoch */
    int64_t longest;     /* tokens of a row or example; 0: not known, or text */
    int64_t length, batch;
    double epochs;
    quickstart_note notes[QUICKSTART_NOTES];
    size_t note_count;
} quickstart_choice;

/* The words of --learn, by sifr_data_kind. */
const char *quickstart_kind_name(sifr_data_kind kind);

/* SIFR_USAGE for a --learn or --train that is none, or a rate, epochs or a device that no config
 * has; what is not given yet is passed over. */
sifr_status quickstart_check_words(const quickstart_answers *answers,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* Sets the keys that follow from model and data; after sifr_data_look. Reads data of a moderate
 * size once, so that what is wrong with them is said now. */
sifr_status quickstart_choose(sifr_context *context, const quickstart_answers *answers,
                              quickstart_choice *choice, sifr_error *error) SIFR_MUST_CHECK;

/* Sets the keys of answers->passed, and those of rows' fields. */
sifr_status quickstart_pass(const quickstart_answers *answers, sifr_config *config,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Sets a key, and says why. */
sifr_status quickstart_put(quickstart_choice *choice, const char *path, const char *value,
                           sifr_error *error, const char *why, ...)
    SIFR_PRINTF(5, 6) SIFR_MUST_CHECK;

/* --- the run's folder (quickstart_run.c) --- */

/* SIFR_USAGE for a run's folder that `sifr train` would refuse, as far as answers are there. */
sifr_status quickstart_check_run(const quickstart_answers *answers,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* Sets answers->run. One that is given and that `sifr train` would refuse is SIFR_USAGE; without,
 * it is the config's name and "-run", and "-2" and so on where that is in use. */
sifr_status quickstart_choose_run(quickstart_answers *answers, sifr_error *error) SIFR_MUST_CHECK;

/* The config's name without ".json", and `ending`; NULL: no memory. */
const char *quickstart_beside(quickstart_answers *answers, const char *ending, sifr_error *error);

/* --- the config's place (quickstart_place.c) --- */

/* SIFR_USAGE for a config that would replace what the run reads, or cannot be written, as far as
 * answers are there. What stands for itself may be replaced: a config that was made here. */
sifr_status quickstart_check_output(const quickstart_answers *answers,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* Whether a path, which need not be there, is the other or below it. */
bool quickstart_is_within(const char *path, const char *other);

/* Whether a config can hold the text. */
bool quickstart_is_utf8(const char *text);

/* The folder that holds the path, as text alone: "." for a name. */
sifr_status quickstart_parent(const char *path, const char *option, char out[BASE_PATH_LENGTH],
                              sifr_error *error) SIFR_MUST_CHECK;

/* --- the file (quickstart_write.c) --- */

/* What its file begins with. */
#define QUICKSTART_MADE "Made by `sifr quickstart`"

/* The keys of `planned`, the choice's config after the plan, that are not at their defaults, each
 * below a comment; `head` begins the file, a line a comment. What is written is read back. */
sifr_status quickstart_write(const quickstart_choice *choice, const sifr_config *planned,
                             int64_t ranks, const char *head, const char *path,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
