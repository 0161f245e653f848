/* Messages of a run before its first step: its model, its step, and where they are held. */
#ifndef TRAIN_ANNOUNCE_H
#define TRAIN_ANNOUNCE_H

#include "train/run.h"

/* Of the model folder and the config: a padding token that ends texts too, keys without effect. */
void train_say_input(const train_state *t);

/* How many modules have adapters, and how much of the model these train; nothing without them. */
void train_say_adapters(const train_state *t);

/* Once the engine has its memory: memory that is not pinned, the file of state on disk, leftovers
 * of killed runs that were removed. All ranks call it; it may fail by communication alone. */
sifr_status train_say_memory(const train_state *t, sifr_error *error) SIFR_MUST_CHECK;

/* What some of DeepSpeed's keys mean here, and the choice of recompute "auto". t->machine must be
 * measured. */
void train_say_activations(const train_state *t);

/* The model, the mesh and the step, when all is ready. */
void train_say_run(const train_state *t);

#endif
