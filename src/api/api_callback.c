#include "api/api_callback.h"

#include "base/errors.h"

sifr_status api_called(sifr_status status, sifr_error *error) {
    if (status == SIFR_OK) return SIFR_OK;
    if (!error->message[0]) base_set_error(error, status, "a callback of the program ended it");
    error->status = status;
    return status;
}
