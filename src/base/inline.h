/* Functions of headers that CUDA sources include as well. */
#ifndef BASE_INLINE_H
#define BASE_INLINE_H

#ifdef __CUDACC__
#define BASE_INLINE static __host__ __device__ __forceinline__
#else
#define BASE_INLINE static inline
#endif

#endif
