/* Standard output that is closed, full, or has lost its reader; and files above the size that
 * `ulimit -f` allows. */
#ifndef CLI_STANDARD_OUTPUT_H
#define CLI_STANDARD_OUTPUT_H

/* Before a command begins. A standard descriptor that is closed gets one that cannot be written:
 * else the next file that is opened would get its number, and a line would be written into it. A
 * write beyond `ulimit -f` fails from now on, like one on a full disk, instead of ending the
 * program. */
void cli_begin_output(void);

/* For commands whose work is elsewhere than on standard output: that its reader ends no longer ends
 * the program. */
void cli_outlive_readers(void);

/* Whether all that was printed has been written. */
int cli_output_is_written(void);

/* At the end of such a command: says that what it printed is lost, if so, and forgets that, so that
 * the command's status is that of its work. `lost`: some was lost elsewhere. */
void cli_forgive_output(const char *name, int lost);

#endif
