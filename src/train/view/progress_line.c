#include "train/view/progress_line.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/columns.h"

/* Columns of the parts with at least this weight, with two spaces between them. */
static size_t width_of(const train_line_part *parts, size_t count, int least) {
    size_t width = 0;
    for (size_t i = 0; i < count; i++)
        if (parts[i].text[0] && parts[i].weight >= least)
            width += base_columns(parts[i].text) + (width ? 2 : 0);
    return width;
}

/* The next larger weight; INT_MAX if there is none. */
static int next_weight(const train_line_part *parts, size_t count, int weight) {
    int next = INT_MAX;
    for (size_t i = 0; i < count; i++)
        if (parts[i].text[0] && parts[i].weight > weight && parts[i].weight < next)
            next = parts[i].weight;
    return next;
}

void train_progress_line(const train_line_part *parts, size_t count, int columns, char *out,
                         size_t size) {
    int least = next_weight(parts, count, INT_MIN), next;
    size_t used = 0;
    while (columns > 0 && width_of(parts, count, least) >= (size_t)columns &&
           (next = next_weight(parts, count, least)) != INT_MAX)
        least = next;
    out[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++)
        if (parts[i].text[0] && parts[i].weight >= least)
            used +=
                (size_t)snprintf(out + used, size - used, "%s%s", used ? "  " : "", parts[i].text);
    /* The last column stays free: some terminals begin a new line there. */
    if (columns > 0) out[base_fit_columns(out, (size_t)columns - 1)] = '\0';
}
