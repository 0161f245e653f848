/* Ranks that were not given the same are found at the start, before they can wait for each other in
 * vain. All ranks of the group call each function, with the same arguments where all is well; where
 * it is not, all get SIFR_USAGE with one message: what differs, on which ranks, and what it is
 * there. No rank fails here by itself. */
#ifndef TRAIN_AGREEMENT_H
#define TRAIN_AGREEMENT_H

#include "comm/comm.h"
#include "config/config.h"
#include "device/device.h"
#include "engine/handle.h"
#include "train/data/data.h"

/* The program: its version, and its file byte for byte. Comes first: another program may already
 * talk otherwise. */
sifr_status train_agree_program(comm_group *group, sifr_error *error) SIFR_MUST_CHECK;

/* The resolved config, but for what may differ between hosts (paths of input, threads); the model's
 * description, and its weights: their names, shapes, types, and their values, of large models 64
 * MiB spread evenly over them. */
sifr_status train_agree_input(comm_group *group, const sifr_config *config,
                              const engine_folder *folder, sifr_error *error) SIFR_MUST_CHECK;

/* What decides on a kernel's bits: instruction set, cache sizes, library versions. */
sifr_status train_agree_machine(comm_group *group, const device *dev,
                                sifr_error *error) SIFR_MUST_CHECK;

/* The token streams; held_out may be NULL. */
sifr_status train_agree_data(comm_group *group, const train_data *data, const train_data *held_out,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
