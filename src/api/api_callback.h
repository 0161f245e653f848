/* What callbacks of a caller answer. */
#ifndef API_CALLBACK_H
#define API_CALLBACK_H

#include "sifr/status.h"

/* The status of a callback that was given `error`, with a message where it failed without one. */
sifr_status api_called(sifr_status status, sifr_error *error) SIFR_MUST_CHECK;

#endif
