/* A mapped file that another program cuts short while it is read. */
#ifndef CLI_TRUNCATION_H
#define CLI_TRUNCATION_H

/* Sizes are checked when a file is opened; a file that shrinks afterwards makes reads of it raise
 * SIGBUS. From this call on that ends the program with one line and exit code 1. */
void cli_catch_truncation(void);

#endif
