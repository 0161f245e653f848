/* Parts of the page, in its order. */
#ifndef TRAIN_VIEW_PAGE_PARTS_H
#define TRAIN_VIEW_PAGE_PARTS_H

#include "train/view/html.h"
#include "train/view/view_run.h"
#include "train/view/view_trace.h"

/* The page may have 5 MiB. */
enum { TRAIN_PAGE_TABLE_BYTES = 3 << 19, TRAIN_PAGE_BYTES = 9 << 19 };

/* The sortable table of all runs, up to TRAIN_PAGE_TABLE_BYTES, and the folders that could not be
 * read. */
void train_page_runs(train_html *html, const train_view_run *runs, size_t count);

/* Of one run, with its trace: each file that the folder lacks, and what would put it there, and
 * each that is there and of no use; once here, and once in the log. `told`: what the log has of the
 * runs before, "" of the first; the same words are not said again. */
enum { TRAIN_PAGE_TOLD = 160 };
void train_page_files(train_html *html, const train_view_run *run, const train_view_trace *trace,
                      const sifr_log *log, char told[TRAIN_PAGE_TOLD]);

/* Of one run: model, machine, events, config. */
void train_page_details(train_html *html, const train_view_run *run);

/* Of one run: memory and wire, planned and measured. */
void train_page_plan(train_html *html, const train_view_run *run);

/* Of its trace: time by class and unit, wire, and the timeline. `number`: of the run. */
void train_page_trace(train_html *html, const train_view_trace *trace, size_t number);

#endif
