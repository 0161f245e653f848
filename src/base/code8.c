#include "base/code8.h"

#include <math.h>

#define BASE_CODE8(which) const base_code8 base_code8_##which
#include "base/code8_tables.h"
