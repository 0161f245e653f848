/* Where a rank's state lies, for the files of this folder. */
#ifndef ENGINE_STATE_PRIVATE_H
#define ENGINE_STATE_PRIVATE_H

#include "engine/engine_private.h"

/* --- state_buffers.c --- */

/* Elements first ... end - 1 of a segment that a buffer of values of `element` bytes holds. */
void engine_held_range(const plan_schedule *s, int32_t segment, int32_t buffer, int64_t element,
                       int64_t *first, int64_t *end);

/* The same where a buffer has `element` bytes for `each` elements. */
void engine_range_in(const plan_schedule *s, int32_t segment, int32_t buffer, int64_t element,
                     int64_t each, int64_t *first, int64_t *end);

/* The same of a segment that is held as codes. */
void engine_held_records(const plan_schedule *s, int32_t segment, int64_t *first, int64_t *end);

/* The buffer of a part of a segment's state; negative where there is none. */
int32_t engine_part_buffer(const plan_schedule *s, int32_t segment, engine_part part);

/* Whether a buffer is copied through the engine's pieces. */
bool engine_in_pieces(const sifr_engine *engine, int32_t buffer);

/* Bytes at `at` of a buffer on any tier. */
sifr_status engine_read_buffer(const sifr_engine *engine, int32_t buffer, int64_t at, void *out,
                               int64_t bytes, sifr_error *error) SIFR_MUST_CHECK;
sifr_status engine_write_buffer(const sifr_engine *engine, int32_t buffer, int64_t at,
                                const void *from, int64_t bytes, sifr_error *error) SIFR_MUST_CHECK;

/* --- the others --- */

/* engine_put of elements of the local weight. */
sifr_status engine_put_local(sifr_engine *engine, size_t index, int64_t first, int64_t count,
                             const float *values, sifr_error *error) SIFR_MUST_CHECK;

/* engine_fill of a weight that is held as codes. */
sifr_status engine_encode(sifr_engine *engine, size_t index, engine_values make, const void *user,
                          sifr_error *error) SIFR_MUST_CHECK;

/* Values of such a weight, from element `at` of its buffer on. */
sifr_status engine_open_codes(const sifr_engine *engine, int32_t buffer, const model_weight *w,
                              int64_t at, int64_t count, float *out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Trained weights that are written during a run are the average: the next step refreshes. */
void engine_note_written(sifr_engine *engine, size_t index);

#endif
