/* Which sifr this is. */
#ifndef SIFR_VERSION_H
#define SIFR_VERSION_H

#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "MAJOR.MINOR.PATCH" of the library that runs; lives as long as the process. */
SIFR_API const char *sifr_version(void);

#ifdef __cplusplus
}
#endif
#endif
