# Everything here needs Go alone; what else is named is fetched, at the version below, through the Go module proxy.

GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
KUSTOMIZE     := sigs.k8s.io/kustomize/kustomize/v5@v5.8.1

GO        ?= go
TEST_TIME ?= 15m
LONG_TIME ?= 90m
AGENTS    ?= .
CLUSTER   ?= .
OVERLAY   ?= deploy/k8s/base
BENCH     ?=

# Packages in which goroutines meet: those that the race detector is for. Pure code has none, and neither have the
# packages in ALONE nor their tests: they print pages, check the repository's files, and fill in forms.
ALONE         := cmd/holdfast/form|internal/(permission|reference|repolint|story)
RACE_PACKAGES  = $$($(GO) list ./bridges/... ./cmd/... ./examples/... ./harness/... ./internal/... ./services/... \
	| grep -v -E '/($(ALONE))$$')
# The longest of them begin first.
RACE_LONGEST  := ./harness ./cmd/holdfast ./bridges/opencode ./bridges/acp ./services/ledger ./internal/embed

# The program is built without cgo, and so is everything here but the race detector: one build of each package serves
# all.
export CGO_ENABLED := 0

# Packages whose tests have an -update flag: they keep golden files or printed pages. Their tests in GOLDEN write them.
GOLDEN := Test(Calls|Transcripts|Goldens|ConfigReference|DeployedBroker|Help|DecisionIndex|EveryIDIsShown|PagesAreUpToDate|RulesFail|Compare|Diff|FactsAndChanges|Screens|TablesAtFourWidths|WhatIsOwed|Stories|Beside|ChartFiles)
golden_packages = $(sort $(dir $(shell grep -rl --include='*_test.go' 'flag.Bool."update"' .)))
# They print what they find in the other packages' files.
golden_last = ./internal/reference/ ./internal/repolint/
# It is a module of its own.
golden_kube = ./test/kube/

.DEFAULT_GOAL := help
.PHONY: help run test check fmt subjects vet cross release lint race grouped cell power clients languages agents board monitoring manifests cluster kube pictures recording long mutate golden bench render

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## build, start everything, play a crash, watch it heal
	$(GO) build -o bin/holdfast ./cmd/holdfast
	./bin/holdfast try

# Most tests wait most of the time, so twice as many packages as there are cores run at once, and as many of a package's
# parallel tests. The longest packages begin first. Of test/, packages in TOGETHER run with the others. Packages that
# kill real processes, or set their clock, come after them, as many at once as there are cores; a new package of test/
# is one of those. The package that measures time, MEASURED, runs by itself. The target cell has the tests of test/cell.
LONGEST  := ./harness ./cmd/holdfast ./test/outage ./test/race ./test/answer ./test/sim ./internal/bus/consumer \
	./examples/agent ./services/... ./internal/bus
TOGETHER := answer|delivery|fuzz|invariants|mutate|outage|race|replay|service|sim|sim/explore
MEASURED := detect
KILLERS   = ./test/crash ./test/clock \
	$$($(GO) list ./test/... | grep -v -E '/test/(cell|$(MEASURED)|$(TOGETHER))$$')
CORES    := $(shell getconf _NPROCESSORS_ONLN)
PARALLEL := $(shell echo $$(($(CORES) * 2)))

# go vet has a target of its own, and go test would analyse every package once more. CI and check run both.
UNVETTED := -vet=off

test: ## all tests that need nothing but Go
	$(GO) test $(UNVETTED) -p $(PARALLEL) -parallel $(PARALLEL) -timeout $(TEST_TIME) $(LONGEST) \
		$$($(GO) list ./... | grep -v /test/; $(GO) list ./test/... | grep -E '/test/($(TOGETHER))$$')
	$(GO) test $(UNVETTED) -p $(CORES) -parallel $(PARALLEL) -timeout $(TEST_TIME) $(KILLERS)
	$(GO) test $(UNVETTED) -timeout $(TEST_TIME) ./test/$(MEASURED)

check: fmt vet lint subjects test cell ## what has to hold before a commit

fmt: ## is everything formatted
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt these files:"; echo "$$files"; exit 1; fi

subjects: ## do the subjects of the newest commits say package and change
	.ci/subjects

vet: ## go vet
	$(GO) vet ./...
	cd test/power && $(GO) vet ./...
	cd test/board && $(GO) vet ./...
	cd test/kube && $(GO) vet ./...
	cd test/kube/cluster && $(GO) vet ./...
	cd bench && $(GO) vet ./...
	$(GO) vet -tags clients ./test/cell
	$(GO) vet -tags languages ./test/languages
	$(GO) vet -tags agents ./test/agents
	$(GO) vet -tags monitoring ./test/monitoring
	cd test/board && $(GO) vet -tags recording .

# The systems of a release. The packages of test/ need Linux.
SYSTEMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
SHIPPED := ./bridges/... ./cmd/... ./examples/... ./harness/... ./internal/... ./pkg/... ./services/...

# The compiler does not optimize here: only the types of the dependencies matter.
cross: ## go vet what is shipped, for every system of a release but this one
	@for s in $(filter-out $(shell $(GO) env GOHOSTOS)/$(shell $(GO) env GOHOSTARCH),$(SYSTEMS)); do echo "$$s"; \
		GOOS=$${s%/*} GOARCH=$${s#*/} $(GO) vet -gcflags='all=-N -l' $(SHIPPED) || exit 1; done

release: ## an archive of the program for every system, with checksums, in dist/
	@GO="$(GO)" deploy/release.sh $(SYSTEMS)

lint: ## golangci-lint, pinned
	$(GO) run $(GOLANGCI_LINT) run
	cd bench && $(GO) run $(GOLANGCI_LINT) run
	cd test/board && $(GO) run $(GOLANGCI_LINT) run
	cd test/kube && $(GO) run $(GOLANGCI_LINT) run
	cd test/kube/cluster && $(GO) run $(GOLANGCI_LINT) run

race: ## tests with the race detector where goroutines meet (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race $(UNVETTED) -p $(CORES) -parallel $(PARALLEL) -timeout $(TEST_TIME) \
		$(RACE_LONGEST) $(RACE_PACKAGES)

grouped: ## tests of the log, the buckets and the objects at a broker that syncs in groups
	HOLDFAST_TEST_GROUPED=1 $(GO) test $(UNVETTED) -timeout $(TEST_TIME) ./internal/bus/log ./internal/bus/kv \
		./internal/bus/lease ./internal/bus/objects

cell: ## attack, restart, cut off and fill up a deployed cell (with root, iproute2 and namespaces as deployed; says so where it cannot)
	$(GO) test -count=1 -v -timeout $(TEST_TIME) ./test/cell

power: ## cut the power of a machine with a broker (needs root, FUSE, loop devices, e2fsprogs and xfsprogs; says so where it cannot)
	cd test/power && $(GO) test -count=1 -v -timeout $(LONG_TIME) .

clients: ## watch a bucket with nats.js and the nats CLI, pinned (needs npm and the module proxy; says so where they are missing)
	$(GO) test -tags clients -count=1 -v -timeout $(TEST_TIME) -run TestOtherClients ./test/cell

languages: ## kill the example agents in other languages at each step (needs python3, nodejs and npm)
	$(GO) test -tags languages -count=1 -v -timeout $(TEST_TIME) ./test/languages

agents: ## kill the real agents in each state of their work, with a model of the test (needs npm and git; installs the agents into the user's cache)
	$(GO) test -tags agents -count=1 -v -timeout $(TEST_TIME) -run '$(AGENTS)' ./test/agents

board: ## open the board in a real browser (needs Chromium and npm: apt-get install -y chromium npm)
	cd test/board && $(GO) test -count=1 -v -timeout $(TEST_TIME) .

monitoring: ## try alerts and dashboard with Prometheus (needs Debian's prometheus: in the PATH, or its folder in HOLDFAST_PROMETHEUS)
	$(GO) test -tags monitoring -count=1 -v -timeout $(TEST_TIME) ./test/monitoring

manifests: ## check the Kubernetes manifests as the API server and Pod Security do (needs no cluster)
	cd test/kube && $(GO) test -count=1 -v -timeout $(TEST_TIME) .

cluster: ## break a cell on a real Kubernetes of this machine (needs root and packages of Debian; says so where it cannot)
	cd test/kube/cluster/kube && $(GO) vet ./...
	cd test/kube/cluster && $(GO) test -count=1 -v -timeout $(LONG_TIME) -run '$(CLUSTER)' .

kube: manifests cluster ## both

pictures: ## take the pictures of the documentation again, of the page as it is (needs Chromium); look at them
	mkdir -p docs/pictures test/board/testdata/pictures
	cd test/board && HOLDFAST_BOARD_PICTURES=1 $(GO) test -count=1 -timeout $(TEST_TIME) -run 'TestPictures$$' .

recording: ## record a real OpenCode that is killed at a permission, for the README (needs Chromium, npm and git); look at it
	cd test/board && $(GO) test -tags recording -count=1 -timeout $(TEST_TIME) -run 'TestRecording$$' .

long: ## the full crash, cluster, clock, power, simulation and board tests (several hours)
	HOLDFAST_LONG=1 $(GO) test -count=1 -p 1 -timeout $(LONG_TIME) ./...
	HOLDFAST_LONG=1 $(MAKE) --no-print-directory power
	cd test/board && HOLDFAST_LONG=1 $(GO) test -count=1 -v -timeout $(LONG_TIME) -run TestPageUnderTheDrill .

mutate: ## remove every guard of a package by machine; a test has to notice (PKG=./harness, FILES=a.go,b.go, TESTS=packages, OPERANDS=1)
	$(GO) run ./test/mutate -pkg $(PKG) -files "$(FILES)" -tests "$(TESTS)" $(if $(OPERANDS),-operands)

golden: ## write golden files and printed pages again; read the difference
	$(GO) test -p $(PARALLEL) -parallel $(PARALLEL) -timeout $(TEST_TIME) \
		-run '^$(GOLDEN)$$' $(filter-out $(golden_last) $(golden_kube),$(golden_packages)) -update
	cd $(golden_kube) && $(GO) test -run '^$(GOLDEN)$$' . -update
	$(GO) test -timeout $(TEST_TIME) -run '^$(GOLDEN)$$' $(golden_last) -update

bench: ## measure against the raw floor beside it: one run, ratios (BENCH=arguments)
	$(GO) build -o bin/holdfast ./cmd/holdfast
	$(GO) build -C bench -o ../bin/bench .
	./bin/bench $(BENCH)

render: ## print the Kubernetes manifests (OVERLAY=folder)
	@$(GO) run $(KUSTOMIZE) build $(OVERLAY)
