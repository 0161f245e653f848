/* Checks of the operands of calls, by kernel: shapes, types and attributes, the same for all
 * devices. SIFR_USAGE names the kernel and the operand. */
#ifndef DEVICE_CHECK_H
#define DEVICE_CHECK_H

#include "device/call.h"

/* Finds the kernel's check below. */
sifr_status device_check_call(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;

sifr_status device_check_linear(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_attention(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_attention_cached(const device_call *call,
                                          sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_head_loss(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_head_preference(const device_call *call,
                                         sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_head_distil(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_head_targets(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_head_logits(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_embedding(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_norm(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_rope(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_regroup(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_neighbours(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_rows(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_elementwise(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_exact_squares(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_update(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_magnitude(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_dequantise(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status device_check_orthogonalise(const device_call *call, sifr_error *error) SIFR_MUST_CHECK;

#endif
