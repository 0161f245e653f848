#include "sifr/version.h"

const char *sifr_version(void) {
    return SIFR_VERSION; /* from project() in CMakeLists.txt */
}
