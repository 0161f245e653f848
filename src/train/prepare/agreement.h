/* Finds ranks that were started with different inputs before they can wait for each other in vain.
 * All ranks of the group call each function. If the arguments differ, all ranks get SIFR_USAGE with
 * one message: what differs, on which ranks, and the values. No rank fails here by itself.
 */
#ifndef TRAIN_AGREEMENT_H
#define TRAIN_AGREEMENT_H

#include "comm/comm.h"
#include "config/config.h"
#include "data/data.h"
#include "device/device.h"
#include "engine/handle.h"

/* Compares the program's version and the bytes of its file. Called first, since another version may
 * communicate differently. */
sifr_status train_agree_program(comm_group *group, sifr_error *error) SIFR_MUST_CHECK;

/* Compares the resolved config, except keys that may differ between hosts (input paths, threads),
 * the model's description, and the weights: names, shapes, types and values. Of large models, 64
 * MiB of values spread evenly are compared. */
sifr_status train_agree_input(comm_group *group, const sifr_config *config,
                              const engine_folder *folder, sifr_error *error) SIFR_MUST_CHECK;

/* Compares what determines the bits of kernels: instruction set, cache sizes, library versions. */
sifr_status train_agree_machine(comm_group *group, const device *dev,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Compares the token streams; held_out may be NULL. */
sifr_status train_agree_data(comm_group *group, const data_set *data, const data_set *held_out,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
