/* What whoever runs the training lends to it: the library prints nothing and knows no signals. */
#ifndef TRAIN_CALLBACKS_H
#define TRAIN_CALLBACKS_H

#include "base/errors.h"

typedef struct train_host {
    const sifr_log *log;                        /* information and warnings; may be NULL */
    void (*line)(void *user, const char *text); /* a line to keep; may be NULL */
    void (*live)(void *user, const char *text); /* replaces the last such line, "" removes it;
                                                   NULL where there is no terminal */
    int (*columns)(void *user);                 /* of the live line; NULL: 80 */
    void (*begin)(void *user);                  /* steps begin: from here on a request to stop is
                                                   honoured by saving; may be NULL */
    int (*stopped)(void *user);                 /* signal that asks the run to stop, 0: none; may
                                                   be NULL */
    int threads; /* of this rank, where the config names none; 0: every core */
    void *user;
} train_host;

void train_say(const train_host *host, const char *format, ...) SIFR_PRINTF(2, 3);
int train_columns(const train_host *host);
int train_stopped(const train_host *host);

#endif
