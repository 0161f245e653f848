/* The places in the mesh of the ranks that a message names. */
#ifndef TRAIN_PLACES_H
#define TRAIN_PLACES_H

#include "plan/mesh.h"

/* Adds to the message of SIFR_LOST_RANK the places of the ranks that it names, in a mesh with
 * stages or replicas: "(rank 3: stage 1, shard 1)". */
void train_name_places(const plan_mesh *mesh, sifr_error *error);

#endif
