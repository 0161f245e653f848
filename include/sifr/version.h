/* The version of the library. */
#ifndef SIFR_VERSION_H
#define SIFR_VERSION_H

#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "MAJOR.MINOR.PATCH" of the library at run time; a static string. */
SIFR_API const char *sifr_version(void);

#ifdef __cplusplus
}
#endif
#endif
