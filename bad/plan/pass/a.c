#include "plan/price/b.h"
