# What can be done here. "make check" is what has to pass before a change goes in.
.PHONY: help check demo chaos systems bench generate fmt install generated formatted tidy vet staticcheck vulnerabilities test
.NOTPARALLEL:

help:
	@echo 'make check     install what is missing, then every check and test'
	@echo 'make demo      a console with everything around it, on this machine'
	@echo 'make chaos     10,000 refunds while everything goes wrong; N=… for another number'
	@echo 'make systems   every system row by row, the tests that show it, their results'
	@echo 'make bench     the benchmarks'
	@echo 'make generate  write the generated files again'
	@echo 'make fmt       format everything'

check: install generated formatted tidy vet staticcheck vulnerabilities test

demo:
	go run ./cmd/console demo

N ?= 10000

chaos:
	go run ./e2e/chaos -n $(N)

systems:
	@go run ./tools/withcluster go run ./tools/systems

bench:
	go run ./tools/withcluster -durable go test -run '^$$' -bench . -timeout 30m ./...
	go run ./tools/withcluster -durable go test -count=1 -v -run '^TestA8_FiftyOfAHundredThousand$$' ./execution

generate:
	go tool templ generate

fmt:
	gofmt -w .
	go tool templ fmt .

install:
	@echo '==> install what is missing'
	@tools/install

generated:
	@echo '==> generated files are fresh'
	@go tool templ generate -check

formatted:
	@echo '==> files are formatted'
	@tools/formatted
	@go tool templ fmt -fail .

tidy:
	@echo '==> go.mod is tidy'
	@go mod tidy -diff

vet:
	@echo '==> go vet'
	@go vet ./...

staticcheck:
	@echo '==> staticcheck'
	@go tool staticcheck ./...

vulnerabilities:
	@echo '==> known vulnerabilities'
	@tools/vulnerabilities

# One PostgreSQL serves all packages. The output comes last, for whoever reads
# the end of a log. web/ draws thousands of pages with texts that mean harm and
# starts no goroutine: there the race detector would only take minutes.
WEB = countersign/web countersign/web/storybook
test:
	@echo '==> go test web'
	@go test $(WEB)
	@echo '==> go test -race'
	@go run ./tools/withcluster go test -race -timeout 12m $$(go list ./... | grep -vxF -e countersign/web -e countersign/web/storybook)
