# `make` builds, `make check` runs the unit tests, `make test` the whole suite, `make soak` the long
# tests; `make demo` trains a small model from scratch.
# Each installs what it lacks first (scripts/install-deps.sh), with Debian's apt.
PRESET ?= release
BUILD ?= build
PREFIX ?= /usr/local
# Tests at a time. One more than two cores: some wait, for ranks that hang or for time to pass.
JOBS ?= 3
# CUDA=1 puts the kernels for GPUs into the program, and fetches their compiler where there is none;
# CUDA=0 leaves them out; the build folder remembers it. Neither: cmake/cuda.cmake.
CUDA ?=
# PARQUET=1 reads Parquet too, and fetches the source of what does. The tests want it, and do without
# where it cannot be had.
PARQUET ?=
OPTIONS = $(if $(CUDA),-DSIFR_CUDA=$(if $(filter 0,$(CUDA)),OFF,ON)) \
  $(if $(PARQUET),-DSIFR_PARQUET=$(if $(filter 0,$(PARQUET)),OFF,ON))
SETS = $(if $(filter-out 0,$(CUDA)),cuda) $(if $(filter-out 0,$(PARQUET)),parquet)

.PHONY: all deps configure tests check test other-mpi speed soak demo install docs bench bench-short \
  gpu-there gpu-check gpu-figures gpu-pack dist deb tarball wheel abi
# Ninja builds in parallel; the targets follow each other, whatever -j says: two Ninjas in one folder,
# or a configuration beside the installation of what it looks for, would meet.
.NOTPARALLEL:
all: $(BUILD)/build.ninja
	@[ -z '$(OPTIONS)' ] || cmake --preset $(PRESET) -B $(BUILD) $(OPTIONS) >/dev/null
	@ninja -C $(BUILD)

deps:
	@scripts/install-deps.sh build $(SETS)

# Ninja runs CMake again by itself where CMake's own files have changed.
$(BUILD)/build.ninja: | deps
	@cmake --preset $(PRESET) -B $(BUILD) $(OPTIONS) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log

configure: deps
	@cmake --preset $(PRESET) -B $(BUILD) $(OPTIONS) >/dev/null

# Configured anew: the tests are built only where their library was found. Warnings are errors;
# WERROR=OFF is for compilers that have others than those of Debian 12.
WERROR = ON
tests: OPTIONS += -DSIFR_WERROR=$(WERROR)
tests:
	@scripts/install-deps.sh build demo test $(SETS)
	@[ '$(PARQUET)' = 0 ] || scripts/install-deps.sh parquet || :
	@[ '$(CUDA)' = 0 ] || scripts/install-deps.sh sass || :
	@cmake --preset $(PRESET) -B $(BUILD) $(OPTIONS) >/dev/null
	@ninja -C $(BUILD)

# The last line is `N passed, N failed`; what was skipped stands above it. In `make test` one place
# more is for the builds under sanitizers, which take what time the others leave.
check: LABEL = check
check: PLACES = $(JOBS)
test: LABEL = full
test: PLACES = $$(($(JOBS) + 1))
check test: tests
	@rm -f $(BUILD)/test-results.xml
	@ctest --test-dir $(BUILD) -L '$(LABEL)' -j $(PLACES) --output-on-failure --no-tests=error \
	  --test-output-size-passed 1000000 --output-junit test-results.xml || :
	@scripts/test-summary.sh $(BUILD)/test-results.xml

# Tests that start ranks, with MPICH where `make test` takes Open MPI, and the other way round: the
# same build opens either.
other-mpi: tests
	@scripts/install-deps.sh other-mpi
	@rm -f $(BUILD)/other-mpi-results.xml
	@case $$($(BUILD)/sifr doctor --json) in *'"opened": "MPICH"'*) mpi=openmpi ;; *) mpi=mpich ;; esac; \
	  SIFR_MPI=$$mpi ctest --test-dir $(BUILD) -L mpi -j $(JOBS) --output-on-failure --no-tests=error \
	  --test-output-size-passed 1000000 --output-junit other-mpi-results.xml || :
	@scripts/test-summary.sh $(BUILD)/other-mpi-results.xml

# Whether sifr became slower, beside this machine's limits: for CI, where other work runs beside it.
speed: tests
	@rm -f $(BUILD)/speed-results.xml
	@ctest --test-dir $(BUILD) -L speed --output-on-failure --no-tests=error \
	  --test-output-size-passed 1000000 --output-junit speed-results.xml || :
	@scripts/test-summary.sh $(BUILD)/speed-results.xml

# Checks this machine's GPU, in at most 380 s after the build; without one it says so, before it
# builds. The compiler of that machine may have other warnings.
TESTS_ON_GPU = $(MAKE) --no-print-directory tests CUDA=1 WERROR=OFF
gpu-there:
	@scripts/gpu-there.sh
gpu-check: gpu-there
	@$(TESTS_ON_GPU)
	@scripts/gpu-check.sh $(BUILD) $(BUILD)/gpu-check

# Figures of this machine's GPU beside PyTorch, in at most 180 s.
gpu-figures: gpu-there
	@$(TESTS_ON_GPU)
	@scripts/gpu-check.sh --figures $(BUILD) $(BUILD)/gpu-check

# The same checks for a machine with a GPU and nothing else, as build/gpu.tar.zst: with MPICH, whose
# launcher needs no place of its own, and kernels for these GPUs alone ("80 90a" for two; empty: for
# all). scripts/gpu-rent.sh runs it there.
GPU_TARGETS ?= 90a
gpu-pack:
	@scripts/install-deps.sh build demo test other-mpi cuda
	@cmake --preset $(PRESET) -B $(BUILD)-gpu -DSIFR_CUDA=ON \
	  -DSIFR_CUDA_TARGETS='$(GPU_TARGETS)' >/dev/null
	@ninja -C $(BUILD)-gpu $$(scripts/gpu-pack.sh --targets)
	@mkdir -p $(BUILD)
	@scripts/gpu-pack.sh $(BUILD)-gpu $(BUILD)/gpu.tar.zst

# The long tests: sanitizers, assertions, repetitions; TESTS=REGEX: some of them. The output of each
# goes into docs/soak-output.txt when it ends, its result into docs/soak.md.
TESTS ?= .
soak: tests
	@scripts/soak.sh $(BUILD) docs/soak.md docs/soak-output.txt '$(TESTS)'

demo:
	@scripts/install-deps.sh build demo ranks
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@ninja -C $(BUILD) sifr
	@scripts/demo.sh $(BUILD)

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

# The files of a release, of the last commit: TRIAL=1 takes a version that has no date in the
# changelog yet, PROVE=1 builds the source without git and trains with it.
DIST = scripts/release.sh $(if $(TRIAL)$1,--trial) $(BUILD)/dist
dist:
	@scripts/install-deps.sh build
	@$(call DIST)

# Debian's packages, in $(BUILD)/deb.
deb:
	@scripts/install-deps.sh build deb
	@$(call DIST,trial)
	@scripts/make-deb.sh $(BUILD)/dist $(BUILD)/deb

# One file, and a wheel, for glibc 2.31 and newer, built in a Debian 11: as root.
tarball wheel:
	@scripts/install-deps.sh build root
	@$(call DIST,trial)
	@scripts/make-portable.sh $(BUILD)/dist $(BUILD)/portable $@

# Stores the library's binary interface (docs/c-interface.md): in the commit that changes it.
abi: all
	@scripts/install-deps.sh abi
	@scripts/abi.py renew $(BUILD)/libsifr.so

# The pages that are made from the tables of the program.
docs: all
	@scripts/make-docs.sh $(BUILD)

# This machine's limits, sifr and its peers, in some two hours on a quiet machine; the peers are
# installed from PyPI at the first time.
bench: all
	@scripts/install-deps.sh build demo bench
	@bench/run --build $(BUILD)

# sifr beside the limits alone, in two minutes: fails where it has become slower.
bench-short: all
	@scripts/install-deps.sh build demo bench
	@bench/run short --build $(BUILD)
