/* The line that shows a run's progress, cut to the terminal's width. */
#ifndef TRAIN_PROGRESS_LINE_H
#define TRAIN_PROGRESS_LINE_H

#include <stddef.h>

/* A part of the line. If the line is too long, parts with the least weight are left out first. */
typedef struct train_line_part {
    char text[96]; /* UTF-8; "": none */
    int weight;
} train_line_part;

/* Joins the parts in order, with two spaces between them, in fewer than `columns` columns; the part
 * with the most weight always stays. columns 0: all parts. */
void train_progress_line(const train_line_part *parts, size_t count, int columns, char *out,
                         size_t size);

#endif
