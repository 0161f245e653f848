/* The functions of MPI 3 that sifr calls, in the types of an ABI (abi_open_mpi.h, abi_mpich.h). */
#ifndef MPI_FUNCTIONS_H
#define MPI_FUNCTIONS_H

#define MPI_FUNCTIONS(F)                                                                           \
    F(MPI_Initialized, (int *there))                                                               \
    F(MPI_Finalized, (int *over))                                                                  \
    F(MPI_Query_thread, (int *level))                                                              \
    F(MPI_Init_thread, (int *argc, char ***argv, int wanted, int *level))                          \
    F(MPI_Finalize, (void))                                                                        \
    F(MPI_Get_library_version, (char *text, int *length))                                          \
    F(MPI_Error_string, (int code, char *text, int *length))                                       \
    F(MPI_Comm_dup, (abi_comm from, abi_comm * to))                                                \
    F(MPI_Comm_split, (abi_comm from, int color, int key, abi_comm *to))                           \
    F(MPI_Comm_split_type, (abi_comm from, int type, int key, abi_info info, abi_comm *to))        \
    F(MPI_Comm_free, (abi_comm * comm))                                                            \
    F(MPI_Comm_rank, (abi_comm comm, int *rank))                                                   \
    F(MPI_Comm_size, (abi_comm comm, int *size))                                                   \
    F(MPI_Comm_set_errhandler, (abi_comm comm, abi_errhandler handler))                            \
    F(MPI_Bcast, (void *data, int count, abi_datatype type, int root, abi_comm comm))              \
    F(MPI_Allgather, (const void *mine, int count, abi_datatype type, void *all, int each,         \
                      abi_datatype type_of_all, abi_comm comm))                                    \
    F(MPI_Allgatherv,                                                                              \
      (const void *mine, int count, abi_datatype type, void *all, const int *counts,               \
       const int *places, abi_datatype type_of_all, abi_comm comm))                                \
    F(MPI_Isend, (const void *data, int count, abi_datatype type, int to, int tag, abi_comm comm,  \
                  abi_request *request))                                                           \
    F(MPI_Irecv, (void *data, int count, abi_datatype type, int from, int tag, abi_comm comm,      \
                  abi_request *request))                                                           \
    F(MPI_Test, (abi_request * request, int *done, abi_status *status))                            \
    F(MPI_Testall, (int count, abi_request *requests, int *done, abi_status *statuses))            \
    F(MPI_Iprobe, (int from, int tag, abi_comm comm, int *there, abi_status *status))              \
    F(MPI_Get_count, (const abi_status *status, abi_datatype type, int *count))

/* Handles that are there from the start. */
#define MPI_HANDLES(H)                                                                             \
    H(MPI_COMM_WORLD)                                                                              \
    H(MPI_BYTE)                                                                                    \
    H(MPI_REQUEST_NULL)                                                                            \
    H(MPI_INFO_NULL)                                                                               \
    H(MPI_ERRORS_RETURN)

#endif
