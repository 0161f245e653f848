/* A page being written: tags as they are, and everything from outside escaped. */
#ifndef TRAIN_VIEW_HTML_H
#define TRAIN_VIEW_HTML_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"

/* After a failed write the calls do nothing, and html_commit says it. */
typedef struct train_html {
    base_writer writer;
    sifr_status status;
    sifr_error error;
} train_html;

sifr_status train_html_open(train_html *html, const char *path, sifr_error *error) SIFR_MUST_CHECK;
sifr_status train_html_commit(train_html *html, sifr_error *error) SIFR_MUST_CHECK;
void train_html_close(train_html *html); /* without commit: nothing is left of it */

/* Markup of the program's own, never a text from outside. */
void train_html_put(train_html *html, const char *markup);
/* Numbers and the program's own words alone: it escapes nothing. */
void train_html_putf(train_html *html, const char *format, ...) SIFR_PRINTF(2, 3);

/* A text from anywhere, as text or as the value of an attribute between quotes: what is markup is
 * escaped; bytes that are no UTF-8, and controls, are shown as the replacement character. */
void train_html_text(train_html *html, const char *text);
void train_html_textn(train_html *html, const char *text, size_t size);

/* The end of a text where it is long: 80 bytes, behind "…". */
void train_html_name(train_html *html, const char *text);

/* Whether `bytes` have been written: what is left out from here on has to be said. */
bool train_html_reached(const train_html *html, uint64_t bytes);

#endif
