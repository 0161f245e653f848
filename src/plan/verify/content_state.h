/* Shared by the files of plan_check_content. */
#ifndef PLAN_CONTENT_STATE_H
#define PLAN_CONTENT_STATE_H

#include "plan/schedule.h"
#include "plan/verify/access.h"
#include "plan/verify/contents.h"

typedef struct content_state {
    const plan_schedule *s;
    plan_contents *of;             /* by buffer */
    bool *moved;                   /* by buffer: a collective moves it, of no segment */
    int64_t *before;               /* by segment: elements of those before it */
    int64_t *squares;              /* by segment: elements whose squares are in the norm so far */
    int64_t ranks, rank, replicas; /* of PLAN_STATE; of PLAN_REPLICAS */
    int32_t step;                  /* updates before the forward pass of this step */
    int32_t version;               /* updates before that of the current instruction */
} content_state;

/* --- what a vector is --- */

int64_t content_element_bytes(const content_state *c); /* of weights in the training type */
int64_t content_sum_bytes(const content_state *c);     /* of sums of gradients */
/* The vector of a segment, where its byte `position` lies at byte `at` of a buffer. */
plan_content content_at(const content_state *c, plan_vector vector, int32_t segment,
                        int32_t version, int64_t at, int64_t position);
/* Its gradient in elements of `bytes`, where `element` lies at byte `at`. */
plan_content content_gradient(const content_state *c, int32_t segment, plan_reach reach,
                              int64_t bytes, int64_t at, int64_t element);
/* Its parameters, or their codes. */
plan_vector content_held_as(const content_state *c, int32_t segment);
/* The version of its weights after `version` updates. */
int32_t content_version(const content_state *c, int32_t segment, int32_t version);

/* --- expecting and leaving --- */

plan_range content_range(const plan_access *access);
/* SIFR_FAILED, with what is there, if a byte of the range is not `wanted`. `index` may be the end
 * of the list. */
sifr_status content_expect_range(const content_state *c, size_t index, const plan_access *access,
                                 plan_range range, const plan_content *wanted,
                                 sifr_error *error) SIFR_MUST_CHECK;
sifr_status content_expect(const content_state *c, size_t index, const plan_access *access,
                           const plan_content *wanted, sifr_error *error) SIFR_MUST_CHECK;
/* The same of weights, of which padding behind those of the segment may have another version. */
sifr_status content_expect_weights(const content_state *c, size_t index, const plan_access *access,
                                   const plan_content *wanted, sifr_error *error) SIFR_MUST_CHECK;
sifr_status content_leave_weights(const content_state *c, const plan_access *access,
                                  const plan_content *is, sifr_error *error) SIFR_MUST_CHECK;
sifr_status content_leave(const content_state *c, const plan_access *access, const plan_content *is,
                          sifr_error *error) SIFR_MUST_CHECK;

/* Of a state with an axis: the bytes of its values of a weight. */
plan_range content_axis_range(const content_state *c, int i, const model_weight *weight);

/* --- a step --- */

/* Of a value of this rank alone, the version says whether a kernel has read it. */
enum { CONTENT_UNREAD, CONTENT_READ };

/* A value of no segment. */
plan_content content_value(plan_reach reach);

/* Values of no segment: which buffers collectives move, kernels that use them, collectives. */
void content_find_values(content_state *c);
sifr_status content_use_values(const content_state *c, const plan_access *accesses, int count,
                               sifr_error *error) SIFR_MUST_CHECK;
sifr_status content_move_values(const content_state *c, size_t index, const plan_access *accesses,
                                int count, sifr_error *error) SIFR_MUST_CHECK;

/* Gradients that travel as codes (content_codes.c). */
sifr_status content_run_encode_sums(const content_state *c, size_t index, const plan_access *x,
                                    const plan_access *y, sifr_error *error) SIFR_MUST_CHECK;
sifr_status content_run_exchange_sums(const content_state *c, size_t index,
                                      sifr_error *error) SIFR_MUST_CHECK;
sifr_status content_run_sum_codes(const content_state *c, size_t index, const plan_access *x,
                                  const plan_access *y, sifr_error *error) SIFR_MUST_CHECK;

sifr_status content_run_update(const content_state *c, size_t index, const plan_access *accesses,
                               int count, sifr_error *error) SIFR_MUST_CHECK;
/* Of updates that read whole weights of which tensor ranks have parts: the gather of their values,
 * and what this rank takes of the logical weight's. */
sifr_status content_gather_parts(const content_state *c, size_t index, const plan_access *x,
                                 sifr_error *error) SIFR_MUST_CHECK;
sifr_status content_take_values(const content_state *c, size_t index, const plan_access *y,
                                sifr_error *error) SIFR_MUST_CHECK;
/* Kernels of compressed gradients. */
sifr_status content_run_compress(const content_state *c, size_t index, const plan_access *accesses,
                                 int count, sifr_error *error) SIFR_MUST_CHECK;
/* Init: weights and states without updates. */
sifr_status content_begin(content_state *c, sifr_error *error) SIFR_MUST_CHECK;
/* All weights and states are one update further. */
sifr_status content_check_end(const content_state *c, sifr_error *error) SIFR_MUST_CHECK;
/* What does not live past the end of the step is unknown in the next one. */
void content_end_step(content_state *c);
void content_free(content_state *c);

#endif
