# The entry point of Eyelevel. A target is a command of eyelevel, and variables are its options: `make -n TARGET` prints
# the command. eyelevel/make.py defines the targets; the next file is generated from it.
include setup/make/targets.mk

# Variables count only if the command line sets them: in the environment, such short names mean something else.
# A value is plain text: make expands nothing in it ("$c", "$(shell …)"), and programs receive it unchanged.
GIVEN := $(foreach v,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $v))),$v))
$(foreach v,$(GIVEN),$(eval override export $v := $$(value $v)))
# Tests call make, too; these variables are not meant for them.
MAKEOVERRIDES :=
define line_break


endef
$(foreach v,$(GIVEN),$(if $(findstring $(line_break),$(value $v)),$(error the value of $v has a line break)))
# An empty value may be a shell's variable that is not set; only a proxy can be switched off by it.
$(foreach v,$(filter-out %_proxy %_PROXY,$(GIVEN)),$(if $(strip $(value $v)),,$(error $v is empty; give it a value, or leave it out)))
given = $(if $(filter $1,$(GIVEN)),$(value $1))
# A value as one word of a shell's command line, whatever it contains.
quote = '$(subst ','\'',$1)'

absolute = $(if $(filter /%,$(firstword $1)),$1,$(CURDIR)/$1)
CACHES := $(or $(value XDG_CACHE_HOME),$(value HOME)/.cache)
override EYELEVEL_CACHE := $(call absolute,$(or $(value EYELEVEL_CACHE),$(CACHES)/eyelevel))
export EYELEVEL_CACHE
PYTHON := $(or $(call given,PYTHON),$(EYELEVEL_CACHE)/venv/bin/python)
# Without bytecode, each of the hundreds of programs that tests start compiles the project again.
PYTEST = env -u PYTHONDONTWRITEBYTECODE $(call quote,$(PYTHON)) -m pytest

# Optional parts of the set-up: `make setup` installs those that its variables name, another target those that it uses.
comma := ,
asked = $(foreach n,$(subst $(comma), ,$(call given,$2)),$1/$n)
optional = $(patsubst setup/optional/%.sh,%,$(wildcard $(patsubst %,setup/optional/%.sh,$1)))
OPTIONAL = $(if $(filter setup,$(MAKECMDGOALS)),\
	$(call asked,servers,SERVERS) $(call asked,browsers,BROWSERS) $(call asked,shells,SHELLS) $(call asked,hops,HOPS),\
	$(call optional,$(call asked,browsers,BROWSER) $(call asked,shells,SHELLS) $(call asked,servers,SERVERS)) \
	$(if $(filter docs,$(MAKECMDGOALS)),documents/mkdocs) $(if $(filter proof,$(MAKECMDGOALS)),proof/format_checkers))

# Refuse a target without its required variables before anything is installed.
$(foreach t,$(MAKECMDGOALS),$(foreach v,$(NEEDS_$t),$(if $(call given,$v),,$(error $t needs $v, as in: $(EXAMPLE_$t)))))

.DEFAULT_GOAL := help
.PHONY: help setup test quick cases check docs soak proof clean $(TARGETS)

help: ## show this help
	@cat setup/make/help.txt

setup: ## install the testbed; every target except help, quick and clean runs this first, if necessary
	@setup/setup.sh$(foreach n,$(OPTIONAL), $(call quote,$n))
	@$(if $(filter setup,$(MAKECMDGOALS)),$(if $(call given,BROWSER_VERSION),setup/browser $(call quote,$(BROWSER_VERSION))))

test: setup ## run all tests
	@setup/cargo test --release --locked --quiet --lib --test '*'
	@setup/cargo --in films/recorder test --release --locked --quiet --lib --test '*'
	@test ! -x $(call quote,$(EYELEVEL_CACHE)/bin/quinn_server) || setup/cargo --in servers/quinn test --release --locked --quiet
	@$(PYTEST) -n 4 --durations 20 --durations-min 0

quick: ## run the tests that need no namespaces, network or browser (about 80 seconds)
	@test -x $(call quote,$(PYTHON)) || { echo "eyelevel: nothing is installed yet; run 'make setup'" >&2; exit 1; }
	@$(PYTEST) -n auto --maxprocesses 4 \
		-m 'not (needs_namespaces or needs_browser or needs_user_namespaces or slow)'

cases: setup ## run the regression tests for reported problems with recordings, pages and logs
	@$(PYTEST) -n 4 -m case

check: setup ## run the checkers: style, types, layers, words
	@setup/check

docs: setup ## build the documentation site in build/docs; fails on a broken link
	@NO_MKDOCS_2_WARNING=1 $(call quote,$(EYELEVEL_CACHE)/bin/mkdocs) build --strict --quiet
	@echo "build/docs/index.html; with its search: python3 -m http.server --directory build/docs"

soak: setup ## run all tests TIMES times, next to BUSY busy processes; each run adds a line to docs/contributors/soak.csv
	@PYTHONPATH=.:tests $(call quote,$(PYTHON)) -m support.soak \
		--times $(call quote,$(or $(call given,TIMES),1)) --busy $(call quote,$(or $(call given,BUSY),0))

proof: setup ## run the tests that take hours: fault injection, fuzzing, whole corpora; installs TeX
	@setup/packages proof
	@setup/unpack clusters >/dev/null
	@$(PYTEST) -n 3 tests/proof tests/analysis/report/test_latex.py

clean: ## remove the installation, except for system packages; keeps sites/ and results/
	@setup/clean

# Under -n, the program prints its command lines if it is installed.
is_dry = $(findstring n,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
# The Makefile of a folder of 'eyelevel init' names that folder: there the program runs.
in_folder = $(if $(value EYELEVEL_FOLDER),$1)
$(TARGETS): setup
	+@$(call in_folder,cd $(call quote,$(value EYELEVEL_FOLDER)) || exit; export PYTHONPATH=$(call quote,$(CURDIR)); )\
		$(if $(is_dry),test ! -x $(call quote,$(PYTHON)) || )$(call quote,$(PYTHON)) $(call in_folder,-P) -m eyelevel.make $(if $(is_dry),--print) \
		$(call quote,$(MAKECMDGOALS)) $@$(foreach v,$(GIVEN), $(call quote,$v=$(value $v)))
