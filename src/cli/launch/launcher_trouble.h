/* Why a launcher may have failed by itself, before its ranks began. */
#ifndef CLI_LAUNCHER_TROUBLE_H
#define CLI_LAUNCHER_TROUBLE_H

#include <stddef.h>

/* What keeps launchers from starting here, and the remedy: "; /tmp cannot be written: set TMPDIR to
 * a folder that can". "" if nothing of that kind is found. */
void cli_launcher_trouble(char *out, size_t capacity);

#endif
