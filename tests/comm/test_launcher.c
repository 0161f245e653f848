/* Who started this process: what each launcher leaves in the environment, and values in it that no
 * launcher would leave.
 * each MPI */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "comm/launcher.h"

static const char *const names[] = {"OMPI_COMM_WORLD_SIZE",
                                    "OMPI_COMM_WORLD_RANK",
                                    "OMPI_COMM_WORLD_LOCAL_SIZE",
                                    "PMI_SIZE",
                                    "PMI_RANK",
                                    "MPI_LOCALNRANKS",
                                    "MV2_COMM_WORLD_SIZE",
                                    "MV2_COMM_WORLD_RANK",
                                    "MV2_COMM_WORLD_LOCAL_SIZE",
                                    "PMIX_RANK",
                                    "PMIX_NAMESPACE",
                                    "SLURM_NTASKS",
                                    "SLURM_PROCID",
                                    "SLURM_STEP_ID",
                                    "SLURM_STEP_NUM_TASKS",
                                    "RANK",
                                    "LOCAL_RANK",
                                    "WORLD_SIZE",
                                    "TORCHELASTIC_RUN_ID"};

static int nothing_set(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    return 0;
}

/* NULL, or pairs of a name and its value before it. */
static void set(const char *const *pairs) {
    nothing_set(NULL);
    for (; *pairs; pairs += 2) setenv(pairs[0], pairs[1], 1);
}

typedef struct launched {
    const char *pairs[12];
    int ranks, rank, local;
} launched;

static void test_none(void **state) {
    (void)state;
    int ranks = -1;
    assert_false(comm_under_launcher(&ranks));
    assert_int_equal(ranks, 1);
    assert_false(comm_under_launcher(NULL));
    assert_int_equal(comm_launcher_rank(), -1);
    assert_int_equal(comm_launcher_local_ranks(), 0);
    assert_null(comm_foreign_launcher(&ranks));
}

static void test_each(void **state) {
    static const launched all[] = {
        {{"OMPI_COMM_WORLD_SIZE", "6", "OMPI_COMM_WORLD_RANK", "5", "OMPI_COMM_WORLD_LOCAL_SIZE",
          "3"},
         6,
         5,
         3},
        {{"PMI_SIZE", "4", "PMI_RANK", "0", "MPI_LOCALNRANKS", "2"}, 4, 0, 2},
        {{"PMI_SIZE", "1", "PMI_RANK", "0"}, 1, 0, 0}, /* one rank is launched too */
        {{"MV2_COMM_WORLD_SIZE", "8", "MV2_COMM_WORLD_RANK", "7", "MV2_COMM_WORLD_LOCAL_SIZE", "8"},
         8,
         7,
         8},
        {{"SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "16", "SLURM_PROCID", "9", "PMIX_RANK",
          "9"},
         16,
         9,
         0},
        /* mpirun of Open MPI in a step of Slurm's */
        {{"OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_RANK", "3", "SLURM_STEP_ID", "0",
          "SLURM_STEP_NUM_TASKS", "1", "SLURM_PROCID", "0"},
         4,
         3,
         0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int ranks = -1;
        set(all[i].pairs);
        assert_true(comm_under_launcher(&ranks));
        assert_int_equal(ranks, all[i].ranks);
        assert_int_equal(comm_launcher_rank(), all[i].rank);
        assert_int_equal(comm_launcher_local_ranks(), all[i].local);
        assert_null(comm_foreign_launcher(&ranks));
    }
    nothing_set(state);
}

/* srun's tasks find each other by PMIx or PMI; Open MPI without either makes each a rank of its
 * own, other MPIs may have a library of Slurm's that leaves no trace. */
static void test_srun(void **state) {
    int ranks = -1;
    bool open_mpi = comm_mpi_chosen() == COMM_OPEN_MPI;
    setenv("SLURM_NTASKS", "4", 1), setenv("SLURM_PROCID", "0", 1);
    assert_false(comm_under_launcher(&ranks)); /* sbatch's own process */
    setenv("SLURM_STEP_ID", "0", 1), setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    unsetenv("SLURM_PROCID");
    assert_false(comm_under_launcher(&ranks)); /* no task of the step */
    assert_null(comm_foreign_launcher(&ranks));
    setenv("SLURM_PROCID", "2", 1);
    assert_int_equal(comm_under_launcher(&ranks), !open_mpi);
    assert_int_equal(ranks, open_mpi ? 1 : 4);
    const char *foreign = comm_foreign_launcher(&ranks);
    assert_string_equal(foreign ? foreign : "", open_mpi ? "srun without PMIx" : "");
    if (open_mpi) assert_int_equal(ranks, 4);
    assert_int_equal(comm_launcher_rank(), 2);
    /* torchrun's variables of the batch script around it do not count */
    setenv("RANK", "5", 1), setenv("LOCAL_RANK", "5", 1), setenv("WORLD_SIZE", "8", 1);
    assert_int_equal(comm_launcher_rank(), 2);
    unsetenv("RANK"), unsetenv("LOCAL_RANK"), unsetenv("WORLD_SIZE");
    setenv("SLURM_STEP_NUM_TASKS", "1", 1); /* one task needs nobody */
    assert_null(comm_foreign_launcher(&ranks));
    setenv("PMI_RANK", "0", 1);
    assert_int_equal(comm_under_launcher(&ranks), !comm_mpi_lacks_pmi());
    nothing_set(state);
}

/* srun's pmi2 has variables of both, and PMI's own word goes first; for an Open MPI that was not
 * built for it, srun is none of its launchers. */
static void test_pmi2(void **state) {
    int ranks = -1;
    bool lacks = comm_mpi_lacks_pmi();
    setenv("PMI_SIZE", "2", 1), setenv("PMI_RANK", "1", 1), setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_STEP_NUM_TASKS", "3", 1), setenv("SLURM_PROCID", "2", 1);
    assert_int_equal(comm_under_launcher(&ranks), !lacks);
    assert_int_equal(ranks, lacks ? 1 : 2);
    const char *foreign = comm_foreign_launcher(&ranks);
    assert_string_equal(foreign ? foreign : "", lacks ? "srun without PMIx" : "");
    assert_int_equal(ranks, lacks ? 3 : 2);
    setenv("MPI_LOCALNRANKS", "2", 1); /* mpiexec of MPICH in a step of srun's */
    assert_true(comm_under_launcher(&ranks));
    assert_int_equal(ranks, 2);
    nothing_set(state);
}

/* mpirun's ranks in a step of srun's have the step's variables too. */
static void test_by_srun(void **state) {
    assert_false(comm_started_by_srun());
    setenv("SLURM_STEP_ID", "0", 1), setenv("SLURM_PROCID", "0", 1);
    setenv("PMIX_NAMESPACE", "slurm.pmix.2.0", 1);
    assert_true(comm_started_by_srun());
    setenv("PMIX_NAMESPACE", "1234567", 1);
    assert_false(comm_started_by_srun());
    unsetenv("PMIX_NAMESPACE");
    assert_true(comm_started_by_srun()); /* pmi2 */
    setenv("MPI_LOCALNRANKS", "2", 1);
    assert_false(comm_started_by_srun());
    nothing_set(state);
}

/* A size that is no whole number from 1 on counts as none; the next launcher's is then read. */
static void test_broken_sizes(void **state) {
    static const char *const broken[] = {
        "", "0", "-1", "3x", "x", "2.0", "2147483648", "9999999999999999999999", "4 ", "0x4"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        int ranks = -1;
        setenv("OMPI_COMM_WORLD_SIZE", broken[i], 1);
        setenv("OMPI_COMM_WORLD_LOCAL_SIZE", broken[i], 1);
        unsetenv("PMI_SIZE"), unsetenv("MPI_LOCALNRANKS");
        assert_false(comm_under_launcher(&ranks));
        assert_int_equal(ranks, 1);
        assert_int_equal(comm_launcher_local_ranks(), 0);
        setenv("PMI_SIZE", "5", 1), setenv("MPI_LOCALNRANKS", "4", 1);
        assert_true(comm_under_launcher(&ranks));
        assert_int_equal(ranks, 5);
        assert_int_equal(comm_launcher_local_ranks(), 4);
    }
    setenv("OMPI_COMM_WORLD_SIZE", "2147483647", 1);
    assert_true(comm_under_launcher(NULL));
    nothing_set(state);
}

/* Rank 0 is a rank; -1 and words are none. */
static void test_broken_ranks(void **state) {
    static const char *const broken[] = {"", "-1", "one", "1,", "2147483648"};
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    assert_int_equal(comm_launcher_rank(), -1); /* a rank of how many? */
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        setenv("OMPI_COMM_WORLD_RANK", broken[i], 1);
        unsetenv("PMI_RANK");
        assert_int_equal(comm_launcher_rank(), -1);
        setenv("PMI_RANK", "0", 1);
        assert_int_equal(comm_launcher_rank(), 0);
    }
    setenv("OMPI_COMM_WORLD_RANK", "3", 1); /* before PMI's */
    assert_int_equal(comm_launcher_rank(), 3);
    nothing_set(state);
}

static void test_foreign(void **state) {
    int ranks = -1;
    setenv("RANK", "1", 1), setenv("WORLD_SIZE", "8", 1);
    assert_null(comm_foreign_launcher(&ranks)); /* no LOCAL_RANK: someone else's variables */
    setenv("LOCAL_RANK", "1", 1);
    assert_string_equal(comm_foreign_launcher(&ranks), "a launcher that sets RANK and WORLD_SIZE");
    assert_int_equal(ranks, 8);
    assert_int_equal(comm_launcher_rank(), 1);
    setenv("TORCHELASTIC_RUN_ID", "none", 1);
    assert_string_equal(comm_foreign_launcher(&ranks), "torchrun");
    setenv("WORLD_SIZE", "many", 1);
    assert_null(comm_foreign_launcher(&ranks));
    setenv("WORLD_SIZE", "8", 1), setenv("PMI_SIZE", "2", 1); /* MPI's launcher goes first */
    assert_null(comm_foreign_launcher(&ranks));
    nothing_set(state);
}

static void test_mpi_names(void **state) {
    (void)state;
    assert_string_equal(comm_mpi_name(COMM_NO_MPI), "no MPI");
    assert_string_equal(comm_mpi_name(COMM_OPEN_MPI), "Open MPI");
    assert_string_equal(comm_mpi_name(COMM_MPICH), "MPICH");
    assert_string_equal(comm_mpi_name(COMM_OTHER_MPI), "MPI");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_none, nothing_set),
        cmocka_unit_test_setup(test_each, nothing_set),
        cmocka_unit_test_setup(test_srun, nothing_set),
        cmocka_unit_test_setup(test_pmi2, nothing_set),
        cmocka_unit_test_setup(test_by_srun, nothing_set),
        cmocka_unit_test_setup(test_broken_sizes, nothing_set),
        cmocka_unit_test_setup(test_broken_ranks, nothing_set),
        cmocka_unit_test_setup(test_foreign, nothing_set),
        cmocka_unit_test(test_mpi_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
