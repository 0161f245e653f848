/* What a launcher and its ranks write to one of their streams, on its way to the terminal. A
 * launcher calls ranks that were asked to stop a failure, in boxes of lines; once a stop was asked
 * for, its lines are dropped and those of the ranks stay. */
#ifndef CLI_LAUNCHER_LINES_H
#define CLI_LAUNCHER_LINES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_launcher_lines {
    int out;      /* where lines go */
    bool asked;   /* set it when the ranks are asked to stop */
    bool middle;  /* of a line that began before, and is passed on to its end */
    bool box;     /* between the two rules of one */
    bool lost;    /* some could not be written */
    bool reason;  /* a rank has said why it ends */
    bool stopped; /* the first one that all were asked to stop */
    size_t place; /* in the current line, and its beginning */
    char head[32];
    size_t used;     /* of `line` */
    char line[8192]; /* not ended yet; a longer one is passed on as it comes */
} cli_launcher_lines;

/* Start with {.out = the descriptor}. */
void cli_launcher_lines_pass(cli_launcher_lines *lines, const char *text, size_t length);
void cli_launcher_lines_end(cli_launcher_lines *lines); /* a last line without an end */

#endif
