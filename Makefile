# This file defines the commands of developers. `make` lists all commands. Only Go must be installed. As root on Debian, each command installs
# the other programs that it needs. Otherwise the command fails and names the missing programs.
#
# The list of `make` shows the text after ## of each target.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Tests that measure time can fail if two test runs share a small machine. So the targets run one after the other, except the two targets of
# e2e-and-others, which sets PARALLEL.
ifndef PARALLEL
.NOTPARALLEL:
endif

# All commands compile with the options of the release that dist-test builds, without cgo and without the paths of this machine. So they can reuse the
# compiled packages of each other. Only test-all needs cgo, for the race detector. Tests leave out vet, because lint runs it.
export CGO_ENABLED := 0
export GOFLAGS := $(GOFLAGS) -trimpath -vet=off

BIN := .cache/bin
# ./... does not include folders whose names begin with a dot.
PACKAGES := ./... ./.ci/engines ./.ci/mcp ./.ci/statements
SCRIPTS = $(shell grep -rlE --exclude-dir=node_modules '^\#!.*bash' .ci)
WITH_POSTGRES := .ci/postgres/with-postgres
# TEST_WITH_POSTGRES keeps the databases of the tests in memory if enough memory is free.
TEST_WITH_POSTGRES := env REELTALLY_TEST_IN_MEMORY=yes $(WITH_POSTGRES)
COMPOSE := docker compose
NEED_CC := .ci/need cc gcc libc6-dev
NEED_REDIS := .ci/need redis-server redis-server
NEED_CHROMIUM := .ci/need chromium-headless-shell,chromium,chromium-browser,google-chrome,google-chrome-stable chromium-headless-shell
NEED_GNUMERIC := .ci/need ssconvert gnumeric && .ci/need locale-gen,/usr/sbin/locale-gen locales
NEED_SDKS := .ci/need git git && .ci/need node nodejs && .ci/need npm npm && .ci/need python3 python3 && \
	{ python3 -c 'import ensurepip' 2>/dev/null || .ci/apt python3-venv; }
NEED_END_TO_END := $(NEED_CHROMIUM) && $(NEED_GNUMERIC) && .ci/need curl curl && \
	.ci/need nginx,/usr/sbin/nginx nginx-light && .ci/need haproxy,/usr/sbin/haproxy haproxy && .ci/need caddy caddy && \
	.ci/need systemd-analyze systemd && .ci/need prometheus prometheus && \
	$(NEED_SDKS)

# These variables can be set on the command line, for example:
# make test PKG=./store/... ARGS='-run TestVideos', make run ARGS='--help', make fuzz FUZZTIME=1m
PKG ?=
ARGS ?=
FUZZTIME ?= 10s
export FUZZTIME

.PHONY: help
help: ## list all commands
	@awk -F ':[^#]*## ' '/^[a-z0-9-]+:[^#]*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##### Run

.PHONY: run
run: ## start server, collector, sandbox and a demo organisation on SQLite in ./data (ARGS='--help' lists options)
	@go run ./cmd/reeltally up $(ARGS)

.PHONY: up
up: ## start PostgreSQL, server and collector in containers and wait until they are healthy (settings: docker-compose.yml)
	@$(COMPOSE) version >/dev/null 2>&1 || { echo "up: Docker with its compose plugin is needed: https://docs.docker.com/compose/install" >&2; exit 1; }
	$(COMPOSE) up --build --detach --wait || { $(COMPOSE) logs --tail=20; exit 1; }

.PHONY: down
down: ## stop the containers and keep the data
	$(COMPOSE) down

##### Test

# In short mode, storetest.SkipIfShort skips tests that take long or need other programs than Go and PostgreSQL.
# With PKG or ARGS, only a part of the tests runs. .ci/engines then does not check that every test case ran on every engine.
.PHONY: test
test: ## test on SQLite and PostgreSQL, without the long tests (10 minutes; PKG=./store/... and ARGS='-run X' run a part)
	@exec $(TEST_WITH_POSTGRES) bash -o pipefail -c 'go test -json "$$@" | go run ./.ci/engines -short $(if $(PKG)$(ARGS),-part)' \
		test -short -shuffle=on -timeout=20m $(ARGS) $(or $(PKG),$(PACKAGES))

.PHONY: check
check: gen-check lint test-all e2e-and-others ## run everything that CI runs: gen-check, lint, test-all, e2e, test-long, test-citus, dist-test

# The race detector needs a C compiler. NO_RACE lists the packages that are compiled without the race detector: the SQLite driver, which is C code
# translated to Go, and packages that only compute a result from their arguments. With the race detector, they would take most of the time of the
# tests, and the tests would find no further races of ReelTally. A package that uses sync.Map, sync.Once or sync/atomic must not be in this list,
# because the detector would report races that do not exist.
NO_RACE := modernc.org/... regexp text/template/parse golang.org/x/net/html golang.org/x/crypto/argon2 golang.org/x/crypto/blake2b \
	crypto/internal/fips140/sha256 github.com/oasdiff/yaml3
RACE := -race $(NO_RACE:%=-gcflags='%=-race=false')
# LONG matches the names of the simulations, of the tests with thousands of answers, requests, rows or fetches, or with many other programs, and of
# the tests that read the whole contract several times. With the race detector, the simulations alone take an hour. The tests that measure the CPU
# time and memory of requests would measure the race detector. The other tests of the collector and of the server run the same code with the race
# detector.
LONG := ^(TestSimulation_|TestKilledCollectors_|TestHostile_|TestHostileLinks_sources|TestTrackedAccount_trackingType|TestTenancy_|TestContract_randomRequests|$\
TestFairness_|TestRenamedAccount_|TestWrongHandleInALink_|TestContractCodeSamples_|TestCollectionHistory_equalsTheSum|$\
TestFoldText_treatsComposed|TestListVideos_returnsEachUnchangedVideo|TestListVideos_usesLittleMemory|TestRequestCost_|TestMCP_needsLittleMemory|TestSDKs_readEachOf10000Videos|$\
TestSDKs_downloadsNeedLittleMemory|TestTokens_eachAddressCanSend|TestPages_offerMoreThan1000|TestPages_sayHowManyAccounts|TestReadContract_|TestETagInputs_)
# The end-to-end tests start programs that are built without the race detector, or control a browser.
END_TO_END := ./cmd/e2e/...
# With GOGC=300, the tests collect garbage less often than by default, which saves a tenth of their CPU time. The programs that tests build with Go need no
# cgo: without it, they share the results of the compiler with the other commands. The race detector waits a second before a program ends, unless
# atexit_sleep_ms is 0.
.PHONY: test-all
test-all: ## run every test except those of e2e and test-long, with the race detector (PKG, ARGS)
	@$(NEED_CC)
	@$(NEED_REDIS)
	@$(if $(PKG),,$(NEED_END_TO_END))
	@CGO_ENABLED=1 GOGC=300 exec $(TEST_WITH_POSTGRES) bash -o pipefail -c 'go test -json "$$@" | go run ./.ci/engines $(if $(PKG)$(ARGS),-part)' \
		test $(RACE) -exec='env CGO_ENABLED=0 GORACE=atexit_sleep_ms=0' -skip='$(LONG)' -shuffle=on -timeout=75m $(ARGS) $(or $(PKG),$$(go list $(PACKAGES) | grep -vxF "$$(go list $(END_TO_END))"))

.PHONY: test-long
test-long: ## run the simulations and the other tests named in LONG, without the race detector
	@exec $(TEST_WITH_POSTGRES) bash -o pipefail -c 'go test -json "$$@" | go run ./.ci/engines -part' \
		test -shuffle=on -timeout=75m -run='$(LONG)' ./collector ./server ./store/internal/db

# The tests of e2e often wait, for example for a server that starts. In the meantime, the other tests use the processor, one after the other.
.PHONY: e2e-and-others others
e2e-and-others:
	@$(MAKE) --no-print-directory --keep-going --jobs=2 PARALLEL=yes e2e others
others:
	@$(MAKE) --no-print-directory --keep-going PARALLEL= test-long test-citus dist-test

# REELTALLY_TEST_CITUS_URL is the URL of a database on the coordinator of a Citus cluster. If it is set, test-citus uses this cluster instead of the
# stand-in for Citus, and also runs the tests of the collector and the end-to-end tests named in CITUS_END_TO_END. docs/scale.md describes
# the cluster.
CITUS_TESTS = REELTALLY_TEST_ENGINE=citus $(TEST_WITH_POSTGRES) go test
CITUS_END_TO_END := ^(TestTracking|TestBulk|TestFairness|TestCollectors|TestFaults|TestMoves_|TestKill_killedServerLosesAndDuplicatesNoLinks)
.PHONY: test-citus
test-citus: ## run the tests of the store with the statements for Citus, on a stand-in for Citus, or on REELTALLY_TEST_CITUS_URL
	@$(CITUS_TESTS) -short -timeout=$(if $(REELTALLY_TEST_CITUS_URL),6h,30m) ./store ./store/queue ./store/ingest ./store/backfill
	@$(if $(REELTALLY_TEST_CITUS_URL),$(CITUS_TESTS) -count=1 -timeout=6h ./collector -skip='$(LONG)')
	@$(if $(REELTALLY_TEST_CITUS_URL),$(CITUS_TESTS) -count=1 -timeout=6h ./cmd/e2e -run='$(CITUS_END_TO_END)')

.PHONY: e2e
e2e: ## run the end-to-end tests, which start the real programs on SQLite and PostgreSQL, some with a browser, proxies or Redis (ARGS)
	@$(NEED_REDIS)
	@$(NEED_END_TO_END)
	@exec $(TEST_WITH_POSTGRES) bash -o pipefail -c 'go test -json "$$@" | go run ./.ci/engines $(if $(ARGS),-part)' \
		test -shuffle=on -timeout=75m $(ARGS) $(END_TO_END)

# SIMULATE sets the numbers of videos and days, for example SIMULATE='-simulation.videos=2000 -simulation.days=30'
SIMULATE ?= -simulation.videos=20000 -simulation.days=100
.PHONY: simulate
simulate: ## simulate 100 days of 20,000 videos with the sandbox and draw docs/evidence/schedule.svg (1 to 2 hours; SIMULATE)
	@mkdir -p docs/evidence
	go test ./collector -count=1 -v -timeout=24h -run TestSimulation -args $(SIMULATE) -simulation.out=$(CURDIR)/docs/evidence

# SIMULATE_KILLED sets the numbers of videos, days, killed collectors and crashes, for example
# SIMULATE_KILLED='-killed.videos=500 -killed.days=20 -killed.kills=50 -killed.crashes=5'. By default, most videos are on YouTube, because one call
# fetches 50 of them.
SIMULATE_KILLED ?= -killed.videos=20000 -killed.days=100 -killed.kills=100 -killed.crashes=10 -killed.ticks=3 -killed.poll=40ms -killed.youtube=96
.PHONY: simulate-killed
simulate-killed: ## simulate 100 days with and without killed collectors and database crashes, and compare the data (hours; SIMULATE_KILLED)
	@mkdir -p docs/evidence
	$(WITH_POSTGRES) go test ./collector -count=1 -v -timeout=24h -run TestKilled -args $(SIMULATE_KILLED) -killed.out=$(CURDIR)/docs/evidence/killed.txt

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (10s), in all packages or in PKG
	@.ci/fuzz $(PKG)

# COUNT is the number of requests, by default 200,000. Another SEED, such as SEED=2, generates other requests. The report is
# written only if every response was correct.
.PHONY: fuzz-contract
fuzz-contract: ## send 200,000 requests generated from openapi.yaml and write docs/evidence/contract-fuzz.md (COUNT, SEED)
	@mkdir -p docs/evidence
	REELTALLY_FUZZ_COUNT=$(or $(COUNT),200000) REELTALLY_FUZZ_SEED=$(or $(SEED),1) REELTALLY_FUZZ_REPORT=$(CURDIR)/docs/evidence/contract-fuzz.md \
		go test -count=1 -v -timeout=3h -run '^TestContract_randomRequestsGetDeclaredResponses$$' ./server/ $(ARGS)

# COUNT is the number of answers of sources to generate, by default 20,000. Another SEED, such as SEED=2, generates other answers.
.PHONY: hostile
hostile: ## give the collector 20,000 generated hostile answers and write docs/evidence/hostile-answers.md (COUNT, SEED)
	@mkdir -p docs/evidence
	@exec $(WITH_POSTGRES) go test ./collector -count=1 -timeout=3h -run '^TestHostile_' $(ARGS) -args -hostile.everywhere \
		-hostile.count=$(or $(COUNT),20000) -hostile.seed=$(or $(SEED),1) -hostile.out=$(CURDIR)/docs/evidence/hostile-answers.md

.PHONY: hostile-requests
hostile-requests: ## measure 111 expensive requests at the running server and write docs/evidence/hostile-requests.md (7 minutes)
	@mkdir -p docs/evidence
	go test ./cmd/e2e -count=1 -v -timeout=1h -run '^TestHostileRequests_useLittleTimeAndMemory$$' $(ARGS) -args -hostile.out=$(CURDIR)/docs/evidence/hostile-requests.md

# WEBHOOKS_KILLED sets the numbers of organisations, videos and killed processes, for example
# WEBHOOKS_KILLED='-webhooks.organisations=4 -webhooks.videos=100 -webhooks.kills=10'
WEBHOOKS_KILLED ?= -webhooks.organisations=10 -webhooks.videos=500 -webhooks.kills=30
.PHONY: webhooks-killed
webhooks-killed: ## send 10,000 events to webhooks while processes are killed and write docs/evidence/webhooks.md (15 minutes; WEBHOOKS_KILLED)
	@mkdir -p docs/evidence
	$(WITH_POSTGRES) go test ./cmd/e2e -count=1 -v -timeout=3h -run '^TestKill_killedProcessesLoseNoEventsForWebhooks$$' $(ARGS) -args $(WEBHOOKS_KILLED) \
		-webhooks.out=$(CURDIR)/docs/evidence/webhooks.md

# KILLS sets three numbers, for example KILLS='-kills.count=100 -kills.links=500 -kills.answers=10'. The option -kills.count is how often the server
# of each engine is killed. The option -kills.links is the number of links in one bulk request. The option -kills.answers is the largest number of
# responses between two kills.
KILLS ?= -kills.count=500 -kills.links=500 -kills.answers=30
.PHONY: kills
kills: ## kill the server of each engine 500 times during a million writes and write docs/evidence/killed-writes.md (1 hour; KILLS)
	@mkdir -p docs/evidence
	$(WITH_POSTGRES) go test ./cmd/e2e -count=1 -v -timeout=3h -run '^TestKill_killedServerLosesNoAcknowledgedWrites$$' $(ARGS) -args $(KILLS) \
		-kills.out=$(CURDIR)/docs/evidence/killed-writes.md

# MOVES sets the numbers of videos and days, for example MOVES='-moves.videos=1000 -moves.days=5'. If REELTALLY_TEST_CITUS_URL is set, the test
# moves the data to this Citus cluster.
MOVES ?= -moves.videos=100000 -moves.days=20
.PHONY: moves
moves: ## back up 100,000 videos under load, move them to PostgreSQL and to Citus and write docs/evidence/moves.md (15 minutes, 70 on a busy machine; MOVES)
	@mkdir -p docs/evidence
	$(WITH_POSTGRES) go test ./cmd/e2e -count=1 -v -timeout=6h -run '^TestMoves_keepEveryRow$$' $(ARGS) -args $(MOVES) -moves.out=$(CURDIR)/docs/evidence/moves.md

# RESTARTS is the number of restarts in `make restarts`. OUTAGES is the number of outages of each kind in `make outages`, such as outages of Redis. Both
# numbers are 20 by default.
.PHONY: restarts
restarts: ## restart two servers behind nginx 20 times under load and write docs/evidence/rolling-restarts.md (2 minutes; RESTARTS)
	@$(NEED_END_TO_END)
	@mkdir -p docs/evidence
	$(WITH_POSTGRES) go test ./cmd/e2e -count=1 -v -timeout=2h -run '^TestProxy_rollingRestartsLoseNoRequest$$' $(ARGS) -args -restarts.count=$(or $(RESTARTS),20) \
		-restarts.out=$(CURDIR)/docs/evidence/rolling-restarts.md

.PHONY: outages
outages: ## stop PostgreSQL and Redis and fill disks under load and write docs/evidence/outages.md (as root; 5 minutes; OUTAGES)
	@$(NEED_REDIS)
	@mkdir -p docs/evidence
	$(WITH_POSTGRES) go test ./cmd/e2e -count=1 -v -timeout=2h -run '^TestOutages_serverLosesNoAcknowledgedWriteAndRecovers$$' $(ARGS) -args -outages.disks -outages.count=$(or $(OUTAGES),20) \
		-outages.out=$(CURDIR)/docs/evidence/outages.md

# PROBES is the number of requests, by default 500,000. With PROBES=50000, the test takes a tenth of the time.
.PHONY: probes
probes: ## ask for data of other organisations 500,000 times and write docs/evidence/tenancy.md (1 hour; PROBES)
	@mkdir -p docs/evidence
	$(WITH_POSTGRES) go test ./server -count=1 -v -timeout=12h -parallel=6 -run '^TestTenancy_hidesDataOfOtherOrganisations$$' $(ARGS) -args -tenancy.probes=$(or $(PROBES),500000) \
		-tenancy.out=$(CURDIR)/docs/evidence/tenancy.md

.PHONY: statements
statements: ## record the SQL statements of the store's tests, check each without its conditions and write docs/evidence/statements.md (10 minutes)
	@rm -rf .cache/statements && mkdir -p .cache/statements docs/evidence
	REELTALLY_TEST_STATEMENTS=$(CURDIR)/.cache/statements $(TEST_WITH_POSTGRES) go test -count=1 -short -timeout=40m ./store/...
	REELTALLY_TEST_STATEMENTS=$(CURDIR)/.cache/statements REELTALLY_TEST_ENGINE=citus $(TEST_WITH_POSTGRES) go test -count=1 -short -timeout=40m ./store ./store/queue ./store/ingest ./store/backfill
	go run ./.ci/statements .cache/statements > .cache/statements.md && mv .cache/statements.md docs/evidence/statements.md

.PHONY: evidence
evidence: probes statements restarts outages kills moves webhooks-killed full-rate spreadsheets fuzz-contract hostile hostile-requests simulate simulate-killed ## write all pages of docs/evidence that tests write (many hours)

.PHONY: spreadsheets
spreadsheets: ## download 100,000 videos as CSV, open them in Gnumeric, import them and write docs/evidence/spreadsheets.md (10 minutes, 50 on a busy machine)
	@$(NEED_GNUMERIC)
	@mkdir -p docs/evidence
	go test ./cmd/e2e -count=1 -v -timeout=2h -run '^TestDownload_csvOpensInASpreadsheetAndCanBeImported$$' $(ARGS) -args -csv.videos=100000 -csv.out=$(CURDIR)/docs/evidence/spreadsheets.md

# The command installs fonts, so that the pictures can show captions with emoji and captions in Chinese, Japanese, Korean and Hindi.
.PHONY: screenshots
screenshots: ## take pictures of all pages of the dashboard into .cache/screenshots, light and dark, 360 and 1440 pixels wide; update those in docs/screenshots
	@$(NEED_CHROMIUM) && .ci/need fc-list fontconfig && { [ -n "$$(fc-list :lang=hi)" ] || .ci/apt fonts-noto-color-emoji fonts-wqy-microhei fonts-lohit-deva; }
	@mkdir -p .cache/screenshots
	go test ./cmd/e2e/browser -count=1 -run '^TestScreenshots$$' -args -screenshots=$(CURDIR)/.cache/screenshots
	cd docs/screenshots && for picture in *.jpg; do cp "$(CURDIR)/.cache/screenshots/$$picture" .; done

# FULL_RATE_FOR=2m runs the test for two minutes only.
.PHONY: full-rate
full-rate: ## call every operation at the full rate of one organisation for 10 minutes and write docs/evidence/full-rate.md (FULL_RATE_FOR)
	@mkdir -p docs/evidence
	go test ./cmd/e2e -count=1 -v -timeout=1h -run '^TestFullRate_maximumAllowedLoadNeedsLittleMemory$$' $(ARGS) -args -fullrate.for=$(or $(FULL_RATE_FOR),10m) -fullrate.out=$(CURDIR)/docs/evidence

# SCALE=1 creates more than 1,000,000 videos instead of 100,000. ONLY='Lists' measures only the comparisons whose names match. PEERS=all
# also measures two other implementations of the list of videos, with fastify and PocketBase, which need Node or other Go modules. DOCS=1
# also writes the results into docs/performance.md and docs/bench.svg.
.PHONY: bench
bench: ## compare the speed with limits such as COPY of PostgreSQL and write bench/latest.json (10 minutes; SCALE, ROUNDS, ONLY, PEERS, DOCS)
	@mkdir -p bin && go build -o bin/ ./cmd/reeltally ./cmd/server ./bench ./bench/peers/bare ./bench/peers/gorm
	@exec $(WITH_POSTGRES) bin/bench -scale=$(or $(SCALE),0.1) -rounds=$(or $(ROUNDS),15) -only='$(ONLY)' -peers=$(or $(PEERS),go) $(if $(DOCS),-docs=docs) \
		-revision="$$(git describe --always --abbrev=12 --dirty 2>/dev/null || echo unknown)"

.PHONY: profiles
profiles: ## profile the CPU time and memory of requests and batches and write docs/evidence/profiles.md (5 minutes; SCALE)
	@mkdir -p bin && go build -o bin/ ./cmd/reeltally ./cmd/server ./bench
	@exec $(WITH_POSTGRES) bin/bench -scale=$(or $(SCALE),0.1) -profiles=docs/evidence/profiles.md \
		-revision="$$(git describe --always --abbrev=12 --dirty 2>/dev/null || echo unknown)"

.PHONY: contract
contract: ## check openapi.yaml and the server with Spectral, Redocly, oasdiff, Schemathesis and generators of clients (needs Node, Python, Java)
	@.ci/contract/check $(ARGS)

.PHONY: sdks
sdks: ## install the client libraries from a clean clone as their users do, check types and run programs with them (2 minutes; a part of test-all)
	@$(NEED_SDKS)
	@exec $(TEST_WITH_POSTGRES) go test -count=1 -v -run '^TestSDKs_installedPackagesWork$$' $(ARGS) ./cmd/e2e

.PHONY: mcp
mcp: ## check POST /mcp with the public conformance scenarios, the MCP inspector and two clients (needs Node and Python)
	@.ci/mcp/check

##### Release

.PHONY: dist
dist: ## build archives for six platforms, a container image, checksums, SBOM and provenance into dist/ (10 minutes)
	go -C .ci/dist run .

.PHONY: dist-test
dist-test: ## build a release for this machine and check its files
	go -C .ci/dist test -count=1 -timeout=30m ./...

##### Generate code and run linters

.PHONY: gen
gen: ## generate gen/ from openapi.yaml
	go generate ./gen/...

.PHONY: web-assets
web-assets: ## download the pinned versions of the scripts of the dashboard, and of axe-core for its tests
	@.ci/web-assets

.PHONY: swagger-ui
swagger-ui: ## download the pinned version of Swagger UI
	@.ci/swagger-ui

.PHONY: gen-check
gen-check: ## fail if gen/ is not what openapi.yaml generates
	@.ci/gen-check

.PHONY: lint
lint: lint-go lint-modules lint-scripts lint-secrets ## check Go code, modules, shell scripts, and that no secret is committed

# golangci-lint runs the checks of go vet too, but leaves out generated code.
.PHONY: lint-go
lint-go: $(BIN)/golangci-lint
	go vet ./gen/...
	go -C .ci/dist vet ./...
	$(BIN)/golangci-lint run $(PACKAGES)

.PHONY: lint-modules
lint-modules:
	go mod tidy -diff
	go mod verify

.PHONY: lint-scripts
lint-scripts:
	@if command -v shellcheck >/dev/null; then shellcheck $(SCRIPTS); \
	else echo "lint-scripts: shellcheck is not installed here; CI checks the scripts of .ci"; fi

.PHONY: lint-secrets
lint-secrets: $(BIN)/gitleaks
	$(BIN)/gitleaks dir . --config=.ci/gitleaks.toml --no-banner --no-color --redact --verbose

.PHONY: fmt
fmt: $(BIN)/golangci-lint ## format all Go code
	$(BIN)/golangci-lint fmt

.PHONY: clean
clean: ## remove built tools, caches, releases, test output, and ./data with the database of make run
	rm -rf .cache bin bench/latest.json data dist

##### Tools

# .ci/tools pins the versions of the tools. Each tool is built from source once. ReelTally's go.mod does not contain the tools' dependencies.

TOOL_INSTALL = @echo "building $(@F)" && mkdir -p $(BIN) && GOBIN=$(abspath $(BIN)) go -C $(<D) install

$(BIN)/golangci-lint: .ci/tools/go.mod
	$(TOOL_INSTALL) github.com/golangci/golangci-lint/v2/cmd/golangci-lint && touch $@

# gitleaks has a separate Go module, because its dependencies conflict with those of golangci-lint.
$(BIN)/gitleaks: .ci/tools/gitleaks/go.mod
	$(TOOL_INSTALL) github.com/zricethezav/gitleaks/v8 && touch $@
