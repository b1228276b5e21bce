# The developer's commands; `make` alone lists them. Needs Go; what else a target needs it sets up or asks for.
#
# A comment behind a target's name, two number signs before it, is its line in the list.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL: # two suites at once on one small machine measure each other

BIN := .cache/bin
# ./... leaves out folders with a dot.
PACKAGES := ./... ./.ci/engines ./.ci/mcp ./.ci/samples
SCRIPTS = $(shell grep -rlE --exclude-dir=node_modules '^\#!.*bash' .ci)
WITH_POSTGRES := .ci/postgres/with-postgres
COMPOSE := docker compose
NEED_CC := .ci/need cc gcc libc6-dev
NEED_REDIS := .ci/need redis-server redis-server
NEED_END_TO_END := .ci/need chromium,chromium-browser,google-chrome,google-chrome-stable chromium && .ci/need curl curl && .ci/need nginx,/usr/sbin/nginx nginx-light && \
	.ci/need python3 python3 && .ci/need node nodejs

# Options for one run: make test PKG=./store/... ARGS='-run TestVideos', make run ARGS='--help', make fuzz FUZZTIME=1m
PKG ?=
ARGS ?=
FUZZTIME ?= 10s
export FUZZTIME

.PHONY: help
help: ## show this list
	@awk -F ':[^#]*## ' '/^[a-z0-9-]+:[^#]*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##### Run

.PHONY: run
run: ## server, collector, sandbox and a demo organisation on SQLite under ./data (ARGS='--help' for options)
	@CGO_ENABLED=0 go run ./cmd/reeltally up $(ARGS)

.PHONY: up
up: ## PostgreSQL, server and collector in containers, up when healthy (docker-compose.yml says what .env must hold)
	@$(COMPOSE) version >/dev/null 2>&1 || { echo "up: needs Docker with its compose plugin: https://docs.docker.com/compose/install" >&2; exit 1; }
	$(COMPOSE) up --build --detach --wait || { $(COMPOSE) logs --tail=20; exit 1; }

.PHONY: down
down: ## stop the containers; the data stays in its volume
	$(COMPOSE) down

##### Test

.PHONY: check
check: gen-check lint test ## all that CI checks: gen-check, lint, test

# With PKG or ARGS a part is run, and whether every case met every engine is not asked.
# The race detector needs a C compiler. It leaves out SQLite, which is C written as Go: in there it finds nothing, and takes
# most of the time.
RACE := -race -gcflags='modernc.org/...=-race=false'
.PHONY: test
test: ## every test on SQLite and PostgreSQL, race detector on (PKG=./store/... and ARGS='-run X' for a part)
	@$(NEED_CC)
	@$(NEED_REDIS)
	@$(if $(PKG),,$(NEED_END_TO_END))
	@CGO_ENABLED=1 exec $(WITH_POSTGRES) bash -o pipefail -c 'go test -json "$$@" | go run ./.ci/engines $(if $(PKG)$(ARGS),-part)' \
		test $(RACE) -shuffle=on -timeout=75m $(ARGS) $(or $(PKG),$(PACKAGES))

.PHONY: e2e
e2e: ## the end-to-end tests alone: the real programs, on SQLite and PostgreSQL
	@$(NEED_REDIS)
	@$(NEED_END_TO_END)
	@exec $(WITH_POSTGRES) go test -count=1 -v $(ARGS) ./cmd/e2e/...

# SIMULATE='-simulation.videos=2000 -simulation.days=30' for another size.
SIMULATE ?= -simulation.videos=20000 -simulation.days=100
.PHONY: simulate
simulate: ## 100 days of 20,000 videos on the sandbox, drawn into docs/evidence/schedule.svg (an hour or two; SIMULATE='…' for less)
	@mkdir -p docs/evidence
	go test ./collector -count=1 -v -timeout=24h -run TestSimulation -args $(SIMULATE) -simulation.out=$(CURDIR)/docs/evidence

# SIMULATE_KILLED='-killed.videos=500 -killed.days=20 -killed.kills=50 -killed.crashes=5' for another size.
SIMULATE_KILLED ?= -killed.videos=20000 -killed.days=100 -killed.kills=100 -killed.crashes=10
.PHONY: simulate-killed
simulate-killed: ## 100 days with collectors killed and the database crashed, compared with undisturbed ones (hours; SIMULATE_KILLED='…' for less)
	@mkdir -p docs/evidence
	$(WITH_POSTGRES) go test ./collector -count=1 -v -timeout=24h -run TestKilled -args $(SIMULATE_KILLED) -killed.out=$(CURDIR)/docs/evidence/killed.txt

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (10s), in all packages or in PKG
	@.ci/fuzz $(PKG)

# SEED=2 draws others, COUNT=10000 fewer; the report is written when all were answered rightly.
.PHONY: fuzz-contract
fuzz-contract: ## 200,000 requests generated from openapi.yaml against the server (COUNT, SEED); writes docs/evidence/contract-fuzz.md
	@mkdir -p docs/evidence
	REELTALLY_FUZZ_COUNT=$(or $(COUNT),200000) REELTALLY_FUZZ_SEED=$(or $(SEED),1) REELTALLY_FUZZ_REPORT=$(CURDIR)/docs/evidence/contract-fuzz.md \
		go test -count=1 -v -timeout=3h -run '^TestContract_holdsForRandomRequests$$' ./server/ $(ARGS)

# COUNT=2000 for fewer, SEED=2 for others.
.PHONY: hostile
hostile: ## 20,000 hostile answers generated, and every scenario in every lane (COUNT, SEED); writes docs/evidence/hostile-answers.md
	@mkdir -p docs/evidence
	@exec $(WITH_POSTGRES) go test ./collector -count=1 -timeout=3h -run '^TestHostile_' $(ARGS) -args -hostile.everywhere \
		-hostile.count=$(or $(COUNT),20000) -hostile.seed=$(or $(SEED),1) -hostile.out=$(CURDIR)/docs/evidence/hostile-answers.md

.PHONY: hostile-requests
hostile-requests: ## 100 requests that try to cost much, each measured at the running server (7 minutes); writes docs/evidence/hostile-requests.md
	@mkdir -p docs/evidence
	go test ./cmd/e2e -count=1 -v -timeout=1h -run '^TestHostileRequests$$' $(ARGS) -args -hostile.out=$(CURDIR)/docs/evidence/hostile-requests.md

# FULL_RATE_FOR=2m for less.
.PHONY: full-rate
full-rate: ## one organisation at its full rate on every operation for ten minutes (FULL_RATE_FOR); writes docs/evidence/full-rate.md and .svg
	@mkdir -p docs/evidence
	go test ./cmd/e2e -count=1 -v -timeout=1h -run '^TestFullRate$$' $(ARGS) -args -fullrate.for=$(or $(FULL_RATE_FOR),10m) -fullrate.out=$(CURDIR)/docs/evidence

.PHONY: contract
contract: ## judge openapi.yaml and the server: Spectral, OWASP, Redocly, breaking changes, Schemathesis (needs Node and Python)
	@.ci/contract/check $(ARGS)

.PHONY: mcp
mcp: ## judge POST /mcp: the public conformance scenarios and the MCP inspector (needs Node)
	@.ci/mcp/check

##### Generate and lint

.PHONY: gen
gen: ## write gen/ anew from openapi.yaml
	go generate ./gen/...

.PHONY: swagger-ui
swagger-ui: ## fetch the pinned Swagger UI anew
	@.ci/swagger-ui

.PHONY: gen-check
gen-check: ## fail when gen/ is not what openapi.yaml generates
	@.ci/gen-check

.PHONY: lint
lint: lint-go lint-modules lint-scripts lint-secrets ## format, vet, golangci-lint, modules, shell scripts, secrets

# go vet also reads the generated code, which golangci-lint leaves out.
.PHONY: lint-go
lint-go: $(BIN)/golangci-lint
	go vet $(PACKAGES)
	$(BIN)/golangci-lint run $(PACKAGES)

.PHONY: lint-modules
lint-modules:
	go mod tidy -diff
	go mod verify

.PHONY: lint-scripts
lint-scripts:
	@if command -v shellcheck >/dev/null; then shellcheck $(SCRIPTS); \
	else echo "no shellcheck on this machine: the scripts of .ci are left to CI"; fi

.PHONY: lint-secrets
lint-secrets: $(BIN)/gitleaks
	$(BIN)/gitleaks dir . --config=.ci/gitleaks.toml --no-banner --no-color --redact --verbose

.PHONY: fmt
fmt: $(BIN)/golangci-lint ## format all Go code
	$(BIN)/golangci-lint fmt

.PHONY: clean
clean: ## remove built tools, caches, test output, and ./data, the database of make run
	rm -rf .cache bin bench/latest.json data

##### Tools: pinned in .ci/tools, built from source once. Nothing of theirs gets into the project's go.mod.

TOOL_INSTALL = @echo "building $(@F), once" && mkdir -p $(BIN) && CGO_ENABLED=0 GOBIN=$(abspath $(BIN)) go -C $(<D) install

$(BIN)/golangci-lint: .ci/tools/go.mod
	$(TOOL_INSTALL) github.com/golangci/golangci-lint/v2/cmd/golangci-lint && touch $@

# A module of its own: its dependencies and golangci-lint's do not build together.
$(BIN)/gitleaks: .ci/tools/gitleaks/go.mod
	$(TOOL_INSTALL) github.com/zricethezav/gitleaks/v8 && touch $@
