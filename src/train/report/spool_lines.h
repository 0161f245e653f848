/* Writes a run's spool (train/send/spool.h): what is to go to a server, whether one is there or
 * not. */
#ifndef TRAIN_SPOOL_LINES_H
#define TRAIN_SPOOL_LINES_H

#include "train/report/kept_lines.h"
#include "train/report/sink.h"

typedef struct train_spool_lines {
    train_lines file;
    json_t *parameters;                     /* of the run's config, as texts */
    const char *experiment, *experiment_id; /* of the environment; NULL: none */
    double began;                           /* seconds since 1970 */
    bool begun;
} train_spool_lines;

/* Reads the config, by the thread that owns it. Nothing is written yet: the output is not made. */
sifr_status train_spool_prepare(train_spool_lines *spool, const train_report_settings *settings,
                                sifr_error *error) SIFR_MUST_CHECK;
/* Once: begins the spool, or goes on with that of the run that resumes. */
sifr_status train_spool_begin(train_spool_lines *spool, const train_report_settings *settings,
                              sifr_error *error) SIFR_MUST_CHECK;
sifr_status train_spool_record(train_spool_lines *spool, const train_record *record,
                               sifr_error *error) SIFR_MUST_CHECK;
sifr_status train_spool_artifact(train_spool_lines *spool, const char *name,
                                 sifr_error *error) SIFR_MUST_CHECK;
/* "FINISHED", "FAILED" or "KILLED". */
sifr_status train_spool_end(train_spool_lines *spool, const char *state,
                            sifr_error *error) SIFR_MUST_CHECK;
void train_spool_lines_close(train_spool_lines *spool); /* harmless on a zeroed one */

#endif
