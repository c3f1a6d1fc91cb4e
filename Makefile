# `make` lists the commands. Each one first brings .venv/ to what uv.lock says (quick when nothing changed).
# On the machine: Python 3.11 or newer, make and a C compiler; the rest comes from the package index.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
READY := .venv/.ready
DEBIAN_PACKAGES := bubblewrap chromium postgresql redis-server runsc
BENCH_PACKAGES := valgrind
PYTHON ?= $(shell for name in python3.11 python3; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; done; echo "$$name")

export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PYTHONDONTWRITEBYTECODE :=

CHANGED = $(shell $(BIN)/python -m tools.quick --changed)

.PHONY: help demo demo-local model live test quick lint static types format docs bench agent-suites soak deps-system deps-bench clean

help: ## List the commands
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /make \1\t/' | expand -t 20

$(READY): pyproject.toml uv.lock
	@"$(PYTHON)" tools/bootstrap.py
	@touch $@

demo: $(READY) ## Run the product against the example CRM (ARGS=... are handed on)
	@$(BIN)/toolcrib demo crm $(ARGS)

model: $(READY) ## Install the small model that runs on this machine (asks first; ARGS=--yes does not)
	@PATH="$(CURDIR)/.tools/bin:$$PATH" $(BIN)/toolcrib model install $(ARGS)

demo-local: $(READY) ## Run the demonstration with the installed model, offline
	@$(BIN)/toolcrib demo crm --model local:qwen2.5-coder-1.5b $(ARGS)

live: $(READY) ## Run the live tasks with the installed model (ARGS="--seeds 1 --only c0"); can be stopped and goes on
	@$(BIN)/python -m benchmarks.live $(ARGS)

test: deps-system lint ## Run every check and every test, soak tests excepted
	$(BIN)/python -m tools.suite $(ARGS)

quick: static ## Run the checks and the tests that your change touches, in under two minutes
	@if [ -n "$(CHANGED)" ]; then echo "pyright: the changed files"; $(BIN)/pyright $(CHANGED); fi
	@$(BIN)/python -m tools.quick $(ARGS)

lint: static types ## Check style, layers, sizes, requirements and types

static: $(READY)
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/python -m tools.size_caps
	$(BIN)/python -m tools.structure
	$(BIN)/python -m tools.shares
	$(BIN)/python -m tools.requirements_check

types: $(READY)
	$(BIN)/pyright

format: $(READY) ## Format the code and fix what can be fixed safely
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY) ## Build the documentation into build/site, without a warning
	@$(BIN)/python -m tools.docs.site

bench: $(READY) deps-bench ## Measure instructions and CPU of a call, a large catalogue, reading calls from text, workflows, durable steps, an MCP gateway and the agent loop beside their peers
	$(BIN)/python -m benchmarks.ratios
	$(BIN)/python -m benchmarks.executor_call
	$(BIN)/python -m benchmarks.catalogue
	$(BIN)/python -m benchmarks.mcp_listing
	$(BIN)/python -m benchmarks.growth
	$(BIN)/python -m benchmarks.text_protocol
	$(BIN)/python -m benchmarks.workflow_runs
	$(BIN)/python -m benchmarks.durable_steps
	$(BIN)/python -m benchmarks.mcp_gateway
	$(BIN)/python -m benchmarks.agent_loop $(ARGS)

agent-suites: $(READY) ## Play AgentDojo's and BFCL's tasks on agents, live and from the recorded runs (ARGS="bfcl --limit 9")
	$(BIN)/python -m benchmarks.suites $(ARGS)

soak: $(READY) ## Run the tests that take minutes (ARGS="--minutes 15"), and keep the results in tests/soak.json
	$(BIN)/python -m tools.soak $(ARGS)

deps-system: ## Install the Debian packages that the tests need
	$(call install,$@,$(DEBIAN_PACKAGES))

deps-bench: ## Install the Debian packages that counting instructions needs
	$(call install,$@,$(BENCH_PACKAGES))

define install
	@if dpkg --status $(2) >/dev/null 2>&1; then \
		echo "$(1): already installed: $(2)"; \
	elif [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then \
		apt-get update --quiet && apt-get install --yes --no-install-recommends $(2); \
	else \
		echo "$(1): not root, or no apt-get; install yourself: $(2)"; \
	fi
endef

clean: ## Remove what the commands made, the environment included
	rm -rf .venv .tools .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.* htmlcov dist build
	find src tests tools examples benchmarks -name __pycache__ -prune -exec rm -rf {} +
