/* Prompts that begin alike: what a slot, or a copy, has of a prompt is not computed again.
 *
 * Keys and values are rows by position, so a slot takes those of any slot's beginning. A state is
 * that of all tokens so far and cannot go back to an earlier one: two copies are kept, one behind
 * the last prompt, with the logits there, and one behind a beginning that two prompts had in
 * common. */
#ifndef INFER_SHARED_PROMPT_H
#define INFER_SHARED_PROMPT_H

#include "infer/generation.h"

sifr_status infer_shared_open(infer_generation *g, sifr_error *error) SIFR_MUST_CHECK;
void infer_shared_close(infer_generation *g);

/* Puts the ids of a prompt into the cache of its slot, and the logits behind them into those of
 * the slot. */
sifr_status infer_shared_fill(infer_generation *g, const infer_sequence *q,
                              sifr_error *error) SIFR_MUST_CHECK;

#endif
