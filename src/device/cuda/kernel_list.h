/* All kernels: CUDA_KERNEL(name, the struct it takes), by topic. Who includes this defines
 * CUDA_KERNEL. CUDA_KERNEL_TYPES: one kernel for each type of activations. */
#define CUDA_KERNEL_TYPES(name, arguments)                                                         \
    CUDA_KERNEL(name##_fp32, arguments)                                                            \
    CUDA_KERNEL(name##_bf16, arguments)                                                            \
    CUDA_KERNEL(name##_fp16, arguments)

CUDA_KERNEL(clear, clear_arguments)

/* element by element: vector/elements.cu, dropout.cu */
#define CUDA_ACTIVATION(name)                                                                      \
    CUDA_KERNEL_TYPES(name, elements_arguments)                                                    \
    CUDA_KERNEL_TYPES(name##_backward, elements_arguments)
#define DEVICE_ACTIVATION(NAME, name, number) CUDA_ACTIVATION(name)
#define DEVICE_ACTIVATION_FORMS(NAME, name, which, one, other)                                     \
    CUDA_ACTIVATION(one) CUDA_ACTIVATION(other)
#include "device/kernels.def"
CUDA_KERNEL_TYPES(scale, elements_arguments)
CUDA_KERNEL_TYPES(scale_by, elements_arguments)
CUDA_KERNEL_TYPES(add, elements_arguments)
CUDA_KERNEL_TYPES(multiply, elements_arguments)
CUDA_KERNEL_TYPES(silu_gate, elements_arguments)
CUDA_KERNEL_TYPES(gelu_tanh_gate, elements_arguments)
CUDA_KERNEL_TYPES(gelu_erf_gate, elements_arguments)
CUDA_KERNEL_TYPES(multiply_backward, elements_arguments)
CUDA_KERNEL_TYPES(silu_gate_backward, elements_arguments)
CUDA_KERNEL_TYPES(gelu_tanh_gate_backward, elements_arguments)
CUDA_KERNEL_TYPES(gelu_erf_gate_backward, elements_arguments)
CUDA_KERNEL_TYPES(convert_fp32, elements_arguments)
CUDA_KERNEL_TYPES(convert_bf16, elements_arguments)
CUDA_KERNEL_TYPES(convert_fp16, elements_arguments)
CUDA_KERNEL_TYPES(dropout, dropout_arguments)

/* flat vectors: updates (vector/adam.cu, ...), vector/exact_squares.cu, dequantise.cu */
#define DEVICE_UPDATE(NAME, name, ...) CUDA_KERNEL(name, update_arguments)
#define DEVICE_UPDATE_CPU(...)
#include "device/kernels.def"
CUDA_KERNEL(lamb_trust, lamb_trust_arguments)
CUDA_KERNEL_TYPES(exact_squares, exact_squares_arguments)
CUDA_KERNEL_TYPES(dequantise, dequantise_arguments)

/* sums over ranks, and decisions: vector/tree_sum.cu, folds.cu */
CUDA_KERNEL_TYPES(tree_sum, tree_sum_arguments)
CUDA_KERNEL(tree_sum_bf16_fp32, tree_sum_arguments)
CUDA_KERNEL(tree_sum_fp16_fp32, tree_sum_arguments)
CUDA_KERNEL(fold_loss, fold_loss_arguments)
CUDA_KERNEL(decide, device_decision)

/* rows: vector/moves.cu, rope.cu, embedding.cu, norm.cu, parts.cu, magnitude.cu */
CUDA_KERNEL(gather_16, gather_arguments)
CUDA_KERNEL(gather_4, gather_arguments)
CUDA_KERNEL(gather_2, gather_arguments)
CUDA_KERNEL_TYPES(row_gradient, row_gradient_arguments)
CUDA_KERNEL_TYPES(split_qkv, split_qkv_arguments)
CUDA_KERNEL_TYPES(unfold, unfold_arguments)
CUDA_KERNEL_TYPES(unfold_backward, unfold_arguments)
CUDA_KERNEL_TYPES(rope, rope_arguments)
CUDA_KERNEL(order_count, order_arguments)
CUDA_KERNEL(order_places, order_arguments)
CUDA_KERNEL(order_tokens, order_arguments)
CUDA_KERNEL_TYPES(table_sums, table_sums_arguments)
CUDA_KERNEL_TYPES(norm, norm_arguments)
CUDA_KERNEL_TYPES(norm_backward, norm_backward_arguments)
CUDA_KERNEL(add_parts, parts_arguments)
CUDA_KERNEL_TYPES(magnitude_norms, magnitude_norms_arguments)
CUDA_KERNEL_TYPES(magnitude_scale, magnitude_scale_arguments)
CUDA_KERNEL_TYPES(magnitude_sums, magnitude_sums_arguments)

/* attention/; the number is the widest head */
#define CUDA_KERNEL_ATTENTION(which)                                                               \
    CUDA_KERNEL(attention_forward_##which, attention_arguments)                                    \
    CUDA_KERNEL(attention_backward_keys_##which, attention_arguments)                              \
    CUDA_KERNEL(attention_backward_queries_##which, attention_arguments)
CUDA_KERNEL_ATTENTION(bf16_64)
CUDA_KERNEL_ATTENTION(bf16_128)
CUDA_KERNEL_ATTENTION(bf16_256)
CUDA_KERNEL_ATTENTION(fp16_64)
CUDA_KERNEL_ATTENTION(fp16_128)
CUDA_KERNEL_ATTENTION(fp16_256)
CUDA_KERNEL_ATTENTION(fp32_128)
CUDA_KERNEL_ATTENTION(fp32_256)
CUDA_KERNEL_TYPES(attention_delta, attention_arguments)
CUDA_KERNEL(attention_ranges, attention_arguments)
CUDA_KERNEL_TYPES(attention_relative, attention_arguments)
CUDA_KERNEL_TYPES(attention_relative_keys, attention_arguments)
CUDA_KERNEL_TYPES(attention_relative_queries, attention_arguments)
CUDA_KERNEL_TYPES(attention_relative_tables, attention_arguments)
CUDA_KERNEL(attention_distances, attention_arguments)

/* product/ */
CUDA_KERNEL_TYPES(gemm_nt, gemm_arguments)
CUDA_KERNEL_TYPES(gemm_nn, gemm_arguments)
CUDA_KERNEL_TYPES(gemm_tn, gemm_arguments)
CUDA_KERNEL(gemm_nt_bf16_small, gemm_arguments)
CUDA_KERNEL(gemm_nn_bf16_small, gemm_arguments)
CUDA_KERNEL(gemm_tn_bf16_small, gemm_arguments)
CUDA_KERNEL(gemm_nt_fp16_small, gemm_arguments)
CUDA_KERNEL(gemm_nn_fp16_small, gemm_arguments)
CUDA_KERNEL(gemm_tn_fp16_small, gemm_arguments)
CUDA_KERNEL(gemm_parts, gemm_parts_arguments)
CUDA_KERNEL_TYPES(column_sums, column_sums_arguments)
CUDA_KERNEL(column_totals, column_totals_arguments)

/* head/ */
CUDA_KERNEL_TYPES(targets_rows, targets_arguments)
CUDA_KERNEL_TYPES(targets_dx, targets_dx_arguments)
CUDA_KERNEL_TYPES(targets_dw, targets_dw_arguments)
CUDA_KERNEL(head_count, head_list_arguments)
CUDA_KERNEL(head_list, head_list_arguments)
CUDA_KERNEL(head_clear16, head_clear_arguments)
CUDA_KERNEL(head_clear32, head_clear_arguments)
CUDA_KERNEL(head_gather16, head_gather_arguments)
CUDA_KERNEL(head_gather32, head_gather_arguments)
CUDA_KERNEL_TYPES(head_shape, head_shape_arguments)
CUDA_KERNEL_TYPES(head_statistics, head_softmax_arguments)
CUDA_KERNEL_TYPES(head_bias_parts, head_softmax_arguments)
CUDA_KERNEL_TYPES(head_gradients, head_softmax_arguments)
CUDA_KERNEL(head_pairs, head_pairs_arguments)
CUDA_KERNEL_TYPES(head_distil_rows, head_distil_arguments)
CUDA_KERNEL_TYPES(head_distil_gradients, head_distil_arguments)
CUDA_KERNEL_TYPES(head_distil_bias, head_distil_arguments)

#undef CUDA_ACTIVATION
#undef CUDA_KERNEL_ATTENTION
#undef CUDA_KERNEL_TYPES
