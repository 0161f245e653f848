# Sourced by tests that start ranks: finds the launcher of the MPI that sifr and the tests' programs
# were built with, and skips the test where there is none. Sets $launcher, $options (which let any
# number of ranks share this machine) and $mpich ("" under Open MPI).
mpich=
case $(ldd "$SIFR") in
*libmpich*) mpich=yes ;;
*libmpi*) ;;
*)
    echo "skipped: this sifr was built without MPI: ranks are not tested"
    exit 77
    ;;
esac
launcher=$("$SIFR" doctor --json | sed -n 's/^ *"launcher": "\(.*\)",$/\1/p')
if [ ! "$launcher" ]; then
    echo "skipped: no mpirun of this MPI here: ranks are not tested"
    exit 77
fi
options=
if [ ! "$mpich" ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    options="--oversubscribe --bind-to none"
fi
