# Sourced by tests of the Python package: sets what finds the one of this build, and skips the test
# where there is none.
export PYTHONPATH="$BUILD/python" PYTHONDONTWRITEBYTECODE=1
if ! [ -e "$BUILD/python/sifr/_sifr.abi3.so" ]; then
    echo "skipped: the Python package was not built: Python.h of 3.11 or later (python3-dev) is not here"
    exit 77
fi
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "skipped: no python3 of 3.11 or later here, which the Python package needs"
    exit 77
fi
