/* Elements that are moved at once: a load or a store of up to 16 bytes. For .cu files. */
#ifndef CUDA_WIDE_H
#define CUDA_WIDE_H

template <typename T, int COUNT> struct alignas(sizeof(T) * COUNT) wide_of { T at[COUNT]; };

#endif
