/* Numbers the ranks host by host, so that neighbours on the mesh's inner axes share one. */
#include <stdlib.h>

#include "base/heap.h"
#include "comm/cores.h"
#include "comm/launcher.h"
#include "comm/mpi/mpi_private.h"
#include "comm/order.h"

static void say_order(const mpi_process *p, const int32_t *number) {
    int32_t other = 0, its = 0;
    while (other < p->size && number[other] == other) other++;
    if (other == p->size || number[p->rank] != 0) return;
    while (number[its] != other) its++;
    base_log(p->log, SIFR_LOG_INFO,
             "ranks: the launcher placed neighbours on different hosts; sifr numbers them host by "
             "host, so its rank %d is the launcher's %d (`srun -m block`, `mpirun --map-by slot` "
             "give the same numbers)",
             (int)other, (int)its);
}

static sifr_status gather_spots(mpi_process *p, MPI_Comm local, comm_spot *all, sifr_error *error) {
    comm_spot mine = {.leaf = comm_switch_id(), .first = p->rank};
    BASE_TRY(comm_mpi_check(MPI_Bcast(&mine.first, 1, MPI_INT32_T, 0, local), "ranks", error));
    return comm_mpi_check(
        MPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, all, (int)sizeof mine, MPI_BYTE, p->world),
        "ranks", error);
}

sifr_status comm_mpi_order_ranks(mpi_process *p, MPI_Comm local, sifr_error *error) {
    comm_spot *all;
    int32_t *number = NULL;
    MPI_Comm ordered;
    BASE_TRY(base_alloc((size_t)p->size, sizeof *all, &all, error));
    sifr_status status = base_alloc((size_t)p->size, sizeof *number, &number, error);
    if (status == SIFR_OK) status = gather_spots(p, local, all, error);
    if (status != SIFR_OK) goto done;
    for (int32_t r = 0; r < p->size; r++) number[r] = comm_order_number(all, p->size, r);
    say_order(p, number);
    status = comm_mpi_check(MPI_Comm_split(p->world, 0, number[p->rank], &ordered), "ranks", error);
    if (status != SIFR_OK) goto done;
    MPI_Comm_free(&p->world);
    p->world = ordered;
    MPI_Comm_rank(p->world, &p->rank);
    MPI_Comm_set_errhandler(p->world, MPI_ERRORS_RETURN);
done:
    free(all);
    free(number);
    return status;
}
