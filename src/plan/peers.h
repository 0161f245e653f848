/* The two ends of each transfer between stages of a pipeline. */
#ifndef PLAN_PEERS_H
#define PLAN_PEERS_H

#include "plan/schedule.h"

/* What a stream carries: that of one border between parts, or of one unit's weights. */
typedef enum plan_stream {
    PLAN_STREAM_VALUES,
    PLAN_STREAM_GRADIENTS,
    PLAN_STREAM_SUMS,    /* of gradients of tied weights, to their owner */
    PLAN_STREAM_WEIGHTS, /* of tied weights, from their owner */
    PLAN_STREAMS
} plan_stream;

/* Two stages exchange in one line each way, in the order of their lists. Where values and gradients
 * go between them the same way, at two stages of several chunks, gradients have a second line. */
bool plan_has_second_line(const plan_pipeline *pipeline);
bool plan_is_on_second_line(const plan_pipeline *pipeline, const plan_instruction *instruction);

bool plan_is_peer(const plan_instruction *instruction); /* PLAN_SEND or PLAN_RECEIVE */
/* Counts and norms are of all ranks: they end when every stage has come to its own. */
bool plan_is_of_all(const plan_instruction *instruction);

/* By stage and instruction: the instruction of the other stage that is the other end. */
typedef struct plan_peers {
    size_t stages;
    int32_t **other;
} plan_peers;

/* Where a transfer has no other end of as many bytes: both stages and what they come to; -1: the
 * end of the list. */
typedef struct plan_peers_fault {
    size_t from, to;
    int32_t send, receive;
} plan_peers_fault;

/* Joins the lists of all stages, by line and order. SIFR_FAILED if some transfer has no other end
 * of the same stream: *fault says which, and the caller writes the message. Free `peers` in any
 * case. */
sifr_status plan_join_peers(const plan_schedule *const *schedules, size_t stages, plan_peers *peers,
                            plan_peers_fault *fault, sifr_error *error) SIFR_MUST_CHECK;
void plan_free_peers(plan_peers *peers);

#endif
