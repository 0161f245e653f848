# Sourced by tests that start ranks: finds the launcher of the MPI that sifr and the tests' programs
# open (SIFR_MPI chooses one), and skips the test where there is none. Sets $launcher, $options (which let any
# number of ranks share this machine) and $mpich ("" under Open MPI).
mpich=
doctor=$("$SIFR" doctor --json)
launcher=$(echo "$doctor" | sed -n 's/^ *"launcher": "\(.*\)",$/\1/p')
if [ ! "$launcher" ]; then
    echo "skipped: no MPI with its mpirun here: ranks are not tested"
    exit 77
fi
case $doctor in *'"opened": "MPICH"'*) mpich=yes ;; esac
options=
if [ ! "$mpich" ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    options="--oversubscribe --bind-to none"
fi
