/* The two ends of each transfer between stages of a pipeline. */
#ifndef PLAN_PEERS_H
#define PLAN_PEERS_H

#include "plan/schedule.h"

/* What a stream carries. It belongs to one border between parts, or to one unit's weights. */
typedef enum plan_stream {
    PLAN_STREAM_VALUES,
    PLAN_STREAM_GRADIENTS,
    PLAN_STREAM_SUMS,    /* of gradients of tied weights, to their owner */
    PLAN_STREAM_WEIGHTS, /* of tied weights, from their owner */
    PLAN_STREAMS
} plan_stream;

/* A line is the transfers from one stage to another, in the order of their lists. In a pipeline of
 * two stages with several chunks, values and gradients go both ways; there gradients have a second
 * line. */
bool plan_has_second_line(const plan_pipeline *pipeline);
bool plan_is_on_second_line(const plan_pipeline *pipeline, const plan_instruction *instruction);

bool plan_is_peer(const plan_instruction *instruction); /* PLAN_SEND or PLAN_RECEIVE */
/* Counts and norms are of all ranks: they end when every stage has come to its own. */
bool plan_is_of_all(const plan_instruction *instruction);

/* other[stage][instruction] is the instruction at the other end of a transfer, on its other stage.
 */
typedef struct plan_peers {
    size_t stages;
    int32_t **other;
} plan_peers;

/* A transfer without an other end of the same size: the two stages, and the instruction that each
 * has reached; -1: the end of its list. */
typedef struct plan_peers_fault {
    size_t from, to;
    int32_t send, receive;
} plan_peers_fault;

/* Finds the other end of each transfer in the lists of all stages: the n-th send of a line meets
 * its n-th receive. SIFR_FAILED if a transfer has no other end of the same stream: *fault says
 * which, and the caller writes the message. Free `peers` in any case. */
sifr_status plan_join_peers(const plan_schedule *const *schedules, size_t stages, plan_peers *peers,
                            plan_peers_fault *fault, sifr_error *error) SIFR_MUST_CHECK;
void plan_free_peers(plan_peers *peers);

#endif
