#!/bin/sh
# Trains over the nodes of a Slurm allocation: sbatch examples/slurm.sh
#SBATCH --job-name=sifr
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --output=sifr-%j.log
# A job that is put back into the queue goes on in its file; by default Slurm empties it.
#SBATCH --open-mode=append
# For a node: the ranks on it times what `sifr plan` says that a rank and the program take, and a
# tenth more. Take one # away; without --mem the partition's default counts, which may be less.
##SBATCH --mem=64G
#
# Before the time is over, and when the job is to make room, Slurm sends SIGTERM to the ranks this
# many seconds before it kills them: as long as a step and a save take, with room to spare. When the
# job is to make room, the time is the partition's or QOS's GraceTime instead (0 by default: nothing
# is saved): `scontrol show partition` says it, and `sacctmgr modify qos NAME set GraceTime=300` or
# slurm.conf sets it. Slurm sends SIGTERM twice; the second one within two seconds asks for no more.
#SBATCH --signal=TERM@300
#SBATCH --requeue
set -eu

# Paths that all nodes see.
model=${MODEL:-$HOME/models/gpt2}
data=${DATA:-$HOME/data/books}
output=${OUTPUT:-$SLURM_SUBMIT_DIR/run}
config=${CONFIG:-$SLURM_SUBMIT_DIR/examples/ds_config_bf16.json}

# A task may use the cores that Slurm gives it, and takes its threads from them. srun by itself does
# not hand --cpus-per-task on.
export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"

# --mpi: pmix for Open MPI, pmi2 for MPICH; `srun --mpi=list` says what there is.
# --kill-on-bad-exit: a rank that fails ends the others. --wait=0: a rank that is done never does.
# A rank that was stopped by a signal has saved, and exits with 143: --resume goes on from there,
# and begins where there is no checkpoint yet. Slurm calls such a job FAILED and puts it back into
# the queue only where slurm.conf has RequeueExit=143; else submit it again.
exec srun --mpi="${SIFR_PMI:-pmix}" --kill-on-bad-exit=1 --wait=0 \
    sifr train --config "$config" --model "$model" --data "$data" --output "$output" \
    --save-steps 500 --resume
