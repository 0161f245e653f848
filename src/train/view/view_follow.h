/* A run that is followed: what its log has grown by since the last look. */
#ifndef TRAIN_VIEW_FOLLOW_H
#define TRAIN_VIEW_FOLLOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "train/view/view_pace.h"
#include "train/view/view_run.h"

/* What the run's summary.json says; UNKNOWN of a run from before there was one. */
typedef enum train_view_state {
    TRAIN_VIEW_UNKNOWN,
    TRAIN_VIEW_RUNNING,
    TRAIN_VIEW_DONE,
    TRAIN_VIEW_STOPPED,
    TRAIN_VIEW_FAILED
} train_view_state;

enum { TRAIN_VIEW_HEAD = 64 }; /* bytes of a log by which a new one is told from it */

typedef struct train_view_follow {
    char *path;         /* of the folder */
    char *log;          /* of metrics.jsonl */
    train_view_run run; /* what was read so far */
    train_view_reader reader;
    bool open;         /* `reader` has a log */
    struct stat about; /* of that log */
    char head[TRAIN_VIEW_HEAD];
    size_t head_bytes;
    bool behind;    /* the log has more already: look again at once */
    double changed; /* base_seconds when what the last look found was written; of the first look */
    struct stat summary; /* of summary.json, as it was read */
    train_view_state state;
    char why[256];                /* of a run that failed; else "" */
    int64_t total_steps;          /* 0: not known */
    int64_t checkpoint;           /* step of the newest one; -1: none */
    train_view_pace pace;         /* by record */
    int64_t paced, paced_resumes; /* rates and resumes of the log that it has seen */
} train_view_follow;

/* The folder may not be there yet. SIFR_USAGE if `path` is something else than a folder,
 * SIFR_FAILED if nobody can tell, as of links that lead in a circle. */
sifr_status train_view_follow_open(train_view_follow *follow, const char *path,
                                   sifr_error *error) SIFR_MUST_CHECK;
void train_view_follow_close(train_view_follow *follow);

/* Reads what is there, up to 16 MiB of it. A log that was replaced or cut, as a resumed run and a
 * rotation do, is read anew. SIFR_FAILED if the log is there and cannot be read. */
sifr_status train_view_follow_look(train_view_follow *follow, sifr_error *error) SIFR_MUST_CHECK;

/* Seconds to the end, by the time that the last steps took, without evaluations and saves; NaN: not
 * known, or it is over. */
double train_view_follow_left(const train_view_follow *follow);

/* Whether the run is over, as far as its folder tells. */
bool train_view_follow_over(const train_view_follow *follow);

#endif
