/* All kernels: CUDA_KERNEL(name, the struct it takes), by topic. Who includes this defines
 * CUDA_KERNEL. */
CUDA_KERNEL(clear, clear_arguments)
