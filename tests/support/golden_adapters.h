/* Adapters that PEFT wrote and trained (tests/golden/README.md: make_lora.py, make_dora.py,
 * make_qlora.py, make_qdora.py), on the devices of golden_run_on. */
#ifndef GOLDEN_ADAPTERS_H
#define GOLDEN_ADAPTERS_H

#include <stddef.h>
#include <stdint.h>

/* Trains each case of results/`results`.json, in fp32, and writes its folder in `folder`; fails the
 * running cmocka test where it is further off than torch is in fp32, or there are fewer cases than
 * `least`. */
void golden_adapters_run(const char *results, size_t least, const char *folder);

/* The same on the CPU by `tensors` tensor ranks, which are threads. Losses and norms may be off by
 * 1e-5 and 1e-4 there. */
void golden_adapters_divide(const char *results, size_t least, const char *folder, int32_t tensors);

#endif
