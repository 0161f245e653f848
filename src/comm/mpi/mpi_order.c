/* Numbers the ranks host by host, so that neighbours on the mesh's inner axes share one. */
#include <stdlib.h>

#include "base/heap.h"
#include "comm/cores.h"
#include "comm/launcher.h"
#include "comm/mpi/mpi_process.h"
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

static sifr_status gather_spots(mpi_process *p, mpi_comm local, comm_spot *all, sifr_error *error) {
    const mpi_library *mpi = &p->mpi;
    comm_spot mine = {.leaf = comm_switch_id(), .first = p->rank};
    int code = mpi->calls.broadcast(mpi, &mine.first, (int)sizeof mine.first, 0, local);
    BASE_TRY(comm_mpi_check(mpi, code, "ranks", error));
    code = mpi->calls.gather(mpi, &mine, (int)sizeof mine, all, p->world);
    return comm_mpi_check(mpi, code, "ranks", error);
}

sifr_status comm_mpi_order_ranks(mpi_process *p, mpi_comm local, sifr_error *error) {
    const mpi_library *mpi = &p->mpi;
    comm_spot *all;
    int32_t *number = NULL;
    mpi_comm ordered;
    BASE_TRY(base_alloc((size_t)p->size, sizeof *all, &all, error));
    sifr_status status = base_alloc((size_t)p->size, sizeof *number, &number, error);
    if (status == SIFR_OK) status = gather_spots(p, local, all, error);
    if (status != SIFR_OK) goto done;
    for (int32_t r = 0; r < p->size; r++) number[r] = comm_order_number(all, p->size, r);
    say_order(p, number);
    int code = mpi->calls.split(mpi, p->world, 0, number[p->rank], &ordered);
    status = comm_mpi_check(mpi, code, "ranks", error);
    if (status != SIFR_OK) goto done;
    mpi->calls.release(mpi, &p->world);
    p->world = ordered;
    mpi->calls.rank(mpi, p->world, &p->rank);
    mpi->calls.return_errors(mpi, p->world);
done:
    free(all);
    free(number);
    return status;
}
