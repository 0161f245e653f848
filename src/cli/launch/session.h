/* A folder for what a launcher and its ranks keep while they run, so that what killed runs left
 * behind is found: BASE/sifr-UID/run-HOST-XXXXXX, HOST a hash of this machine's name. Whoever uses
 * it holds its lock (flock, on the folder itself); a free lock means that the run is gone. */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include <stdint.h>

#include "base/file.h"

/* Of a path: sockets are made some levels below it, and a socket's path has 108 bytes at most. */
enum { CLI_SESSION_LENGTH = 64 };

typedef struct cli_session {
    char path[CLI_SESSION_LENGTH]; /* "": there is none */
    int lock; /* the folder's descriptor; closed by exec, unless the program is to hold it too */
} cli_session;

/* Makes one that only this user may enter, and locks it. SIFR_USAGE where `base` is not absolute or
 * too long, SIFR_FAILED where no folder can be made there, or BASE/sifr-UID is one that others may
 * write. */
sifr_status cli_session_make(const char *base, cli_session *out, sifr_error *error) SIFR_MUST_CHECK;

/* Removes it with all that is in it, and BASE/sifr-UID with the last one; harmless on a zeroed
 * one. */
void cli_session_remove(cli_session *session);

/* Removes those in `base` that runs of this user on this machine left behind when they were killed;
 * returns how many. What cannot be told for sure is left alone. */
int32_t cli_session_clean(const char *base);

#endif
