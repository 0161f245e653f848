/* Every fault of a config in one message, so that a user mends them in one go. */
#include <stdio.h>
#include <string.h>

#include "config/config_private.h"

sifr_status config_faults_add(config_faults *faults, sifr_status status, const sifr_error *error) {
    char item[SIFR_ERROR_LENGTH + 32];
    if (status != SIFR_USAGE) return status;
    size_t used = strlen(faults->text);
    if (faults->count++ == 0) faults->first = *error;
    int length = snprintf(item, sizeof item, " (%zu) %s", faults->count, error->message);
    /* What does not fit is counted by config_faults_end. */
    if (faults->shown + 1 == faults->count && used + (size_t)length < sizeof faults->text) {
        memcpy(faults->text + used, item, (size_t)length + 1);
        faults->shown++;
    }
    return SIFR_OK;
}

sifr_status config_faults_end(const config_faults *faults, sifr_error *error) {
    if (faults->count == 0) return SIFR_OK;
    if (faults->count == 1 || faults->shown == 0)
        return base_fail(error, SIFR_USAGE, "%s", faults->first.message);
    if (faults->shown == faults->count)
        return base_fail(error, SIFR_USAGE, "%zu faults:%s", faults->count, faults->text);
    return base_fail(error, SIFR_USAGE, "%zu faults, the first %zu:%s", faults->count,
                     faults->shown, faults->text);
}
