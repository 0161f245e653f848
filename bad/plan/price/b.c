#include "plan/pass/a.h"
