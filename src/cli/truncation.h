/* Handles a mapped file that another program truncates while it is read. */
#ifndef CLI_TRUNCATION_H
#define CLI_TRUNCATION_H

/* Sizes are checked when a file is opened. If the file shrinks later, reading it raises SIGBUS.
 * After this call, that ends the program with one line and exit code 1. */
void cli_catch_truncation(void);

#endif
