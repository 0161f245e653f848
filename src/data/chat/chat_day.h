/* The day that functions of chat templates get when they ask for the date (strftime_now), so that
 * the same rows give the same text on any day. */
#ifndef DATA_CHAT_DAY_H
#define DATA_CHAT_DAY_H

#include <time.h>

#include "base/errors.h"

/* 26 July 2024, the date that Llama's templates take where there is no clock. */
struct tm data_chat_day_usual(void);

/* YYYY-MM-DD, from 1900 on. SIFR_USAGE for what is no such day. */
sifr_status data_chat_day_read(const char *word, struct tm *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
