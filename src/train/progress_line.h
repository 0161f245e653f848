/* The line that shows a run's progress, as much of it as a terminal has room for. */
#ifndef TRAIN_PROGRESS_LINE_H
#define TRAIN_PROGRESS_LINE_H

#include <stddef.h>

/* A part of the line: where there is too little room, those with the least weight go first. */
typedef struct train_line_part {
    char text[48]; /* "": none */
    int weight;
} train_line_part;

/* The parts in their order, two spaces between, in fewer than `columns` columns; at least the one
 * with the most weight. columns 0: all of them. */
void train_progress_line(const train_line_part *parts, size_t count, int columns, char *out,
                         size_t size);

#endif
