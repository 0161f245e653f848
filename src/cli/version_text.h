/* `sifr --version`. */
#ifndef CLI_VERSION_TEXT_H
#define CLI_VERSION_TEXT_H

#include <stdbool.h>

/* True if the command line asks for the version, rightly or wrongly: *exit_code is then the
 * program's. --verbose adds what a report of a fault needs: the commit, how and of what the program
 * was built, and where it runs. No device is opened, and no other program started. */
bool cli_version_asked(int argc, char **argv, int *exit_code);

#endif
