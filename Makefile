# Eyelevel's front door. Every target is a thin line over a command that can be run by hand: `make -n TARGET` shows it.

EYELEVEL_CACHE := $(abspath $(or $(EYELEVEL_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/eyelevel))
export EYELEVEL_CACHE
# A folder with networks.toml or protocols.toml of one's own.
TUNING := $(and $(TUNING),$(abspath $(TUNING)))
export EYELEVEL_TUNING := $(or $(TUNING),$(EYELEVEL_TUNING))
PYTHON := $(EYELEVEL_CACHE)/venv/bin/python

# Options for the variables that were given. What is left out, the command chooses.
option = $(if $($2),$1 '$($2)')
CAMPAIGN_OPTIONS = $(strip $(call option,--net,NET) $(call option,--proto,PROTO) $(call option,--sites,SITES) \
	$(call option,--runs,RUNS) $(call option,--max-runs,MAX_RUNS) $(call option,--seed,SEED) $(call option,--films,FILMS) \
	$(call option,--hypotheses,HYPOTHESES) $(call option,--quality,QUALITY) $(call option,--browser,BROWSER) $(call option,--dask,DASK) $(call option,--campaign,CAMPAIGN) \
	$(if $(filter no,$(REPEATABLE)),--as-recorded))

# Studies say their own commands (studies/*/__init__.py), which are targets here.
STUDIES := $(shell sed -n 's/^ *command="\([^"]*\)",$$/\1/p' studies/*/__init__.py)
# A study takes what is given: these variables, and any other on the command line (DEPTH=3 becomes --depth 3).
STUDY_VARIABLES := SITE SITES NET PROTO RUNS SEED CAMPAIGN BROWSER DASK PRESET COUNTS SIZES LIMIT BUDGET DELAYS CONDITIONS
NO_OPTIONS := TUNING EYELEVEL_TUNING EYELEVEL_CACHE PYTHON MAKEFLAGS MAKEOVERRIDES
given = $(filter-out $(NO_OPTIONS),$(foreach v,$(.VARIABLES),$(if $(filter command,$(word 1,$(origin $v))),$v)))
lower = $(shell printf %s '$1' | tr A-Z_ a-z-)
STUDY_OPTIONS = $(strip $(foreach v,$(STUDY_VARIABLES) $(filter-out $(STUDY_VARIABLES),$(given)),\
	$(call option,--$(call lower,$v),$v)))

# What a target cannot do without is asked for before anything is done.
needs = $(if $(filter $1,$(MAKECMDGOALS)),$(foreach v,$2,$(if $($v),,$(error $1 needs $v, as in: $3))))
$(call needs,import,FROM,make import FROM=recordings/www.yelp.com)
$(call needs,status,CAMPAIGN,make status CAMPAIGN=try)
$(call needs,review,CAMPAIGN,make review CAMPAIGN=try)
$(call needs,report,CAMPAIGN,make report CAMPAIGN=try)
$(call needs,figures,CAMPAIGN,make figures CAMPAIGN=try)
$(call needs,replay,SITE NET PROTO,make replay SITE=demo-news NET=lte PROTO=tcp)

.DEFAULT_GOAL := help
.PHONY: help setup test quick check proof record import close site-info replay campaign status review report figures validate clean $(STUDIES)

help: ## show this help
	@awk '/^[a-z0-9-]+:.*## / { sub(/:.*## /, " "); printf "  make %-10s", $$1; sub(/^[a-z0-9-]+/, ""); print } \
		/^##$$/ && !studies++ { while (("cat studies/*/__init__.py" | getline line) > 0) { \
			if (line ~ /^ *command="/) { split(line, part, "\""); printf "  make %-10s", part[2] } \
			if (line ~ /^ *title="/) { split(line, part, "\""); print " " part[2] ", and write the report" } } } \
		/^##/ { print substr($$0, 4) } \
		/^##   FROM/ { while (("cat record/formats/*.py" | getline line) > 0) { \
			if (line ~ /^DESCRIPTION = "/) { split(line, part, "\""); print "                     " part[2] } } }' $(firstword $(MAKEFILE_LIST))

setup: ## install what the testbed needs; every target below does it first, once
	@setup/setup.sh

test: setup ## run all tests
	@setup/cargo test --release --locked --quiet
	@setup/as-root '$(PYTHON)' -m pytest -n 3

quick: ## run the tests that need no root, network or browser, in a minute or two
	@test -x '$(PYTHON)' || { echo "eyelevel: nothing is installed yet; run 'make setup'" >&2; exit 1; }
	@'$(PYTHON)' -m pytest -n auto --maxprocesses 4 \
		-m 'not (needs_root or needs_browser or needs_user_namespaces or slow)'

check: setup ## run the checkers: style, types, layers, words
	@setup/check

proof: setup ## run what takes hours: faults by the dozen, fuzzing, whole corpora; installs TeX
	@setup/packages proof
	@setup/as-root '$(PYTHON)' -m pytest -n 3 tests/proof tests/analysis/report/test_latex.py

record: setup ## load SITES, a URL or a file that lists some (sites.txt), from the web, make sites of them, and close these
	@'$(PYTHON)' -m eyelevel record $(if $(SITES),'$(SITES)'); status=$$?; \
		setup/as-root '$(PYTHON)' -m eyelevel close --recorded && exit $$status

import: setup ## make a site of the recording FROM
	@'$(PYTHON)' -m eyelevel import '$(FROM)'

close: setup ## find out what SITES, or all not closed yet, ask for that was not recorded; fetch it if possible
	@setup/as-root '$(PYTHON)' -m eyelevel close $(foreach site,$(SITES),'$(site)')

site-info: setup ## tell what the recorded sites are, and draw the paper's Figure 1 of them
	@'$(PYTHON)' -m eyelevel site-info

replay: setup ## open a shell as the client of SITE, behind the network NET, over PROTO
	@setup/as-root '$(PYTHON)' -m eyelevel replay --site '$(SITE)' --net '$(NET)' --proto '$(PROTO)'

campaign: setup ## measure SITES over every NET and PROTO, or go on with it; the result is results/CAMPAIGN
	@setup/as-root '$(PYTHON)' -m eyelevel campaign $(CAMPAIGN_OPTIONS)

status: setup ## tell how CAMPAIGN stands, also while it runs
	@'$(PYTHON)' -m eyelevel status '$(CAMPAIGN)'

review: setup ## look at the films of CAMPAIGN, and accept or reject runs by eye
	@'$(PYTHON)' -m eyelevel review '$(CAMPAIGN)'

report: setup ## write the report of CAMPAIGN: one page with all tables, figures, and films of SITE if given
	@'$(PYTHON)' -m eyelevel report $(call option,--hypotheses,HYPOTHESES) $(call option,--site,SITE) '$(CAMPAIGN)'

figures: setup ## draw the figures of CAMPAIGN alone
	@'$(PYTHON)' -m eyelevel report --figures-only $(call option,--hypotheses,HYPOTHESES) $(call option,--site,SITE) '$(CAMPAIGN)'

validate: setup ## measure each NET and PROTO, and compare with its settings
	@setup/as-root '$(PYTHON)' -m eyelevel validate $(strip $(call option,--net,NET) $(call option,--proto,PROTO))

$(STUDIES): setup
	@setup/as-root '$(PYTHON)' -m eyelevel $@ $(STUDY_OPTIONS)
	@'$(PYTHON)' -m eyelevel report '$(or $(CAMPAIGN),$(PRESET),$@)'

clean: ## remove what setup installed, except for system packages; sites/ and results/ stay
	@setup/clean

##
## Variables, of which NET, PROTO and SITES of a campaign may be lists (a,b) or all:
##   NET              dsl, lte, da2gc, mss; also those of tuning/further and TUNING
##   PROTO            tcp, tcp+, tcp+bbr, quic, quic+bbr; also those of tuning/further and TUNING
##   TUNING           a folder with a networks.toml or a protocols.toml of yours
##   REPEATABLE       no: without the script that makes pages ask for the same on every load
##   SITES, SITE      folders in sites/; of make record, a URL or a file of lines NAME URL
##   RUNS             how many of each site, network and protocol (31), or auto: until all is decided, MAX_RUNS at most
##   HYPOTHESES       what is asked, as a file (analysis/hypotheses.toml); a campaign keeps it before its first run
##   FILMS, QUALITY   all, sample or none; lossless or small: which films are kept once their metrics are
##   BROWSER          the browser (chromium)
##   DASK             the scheduler of a Dask cluster to measure on (tcp://scheduler:8786)
##   PRESET           of make grid: longlook, longlook-0rtt, controlled, lossy-bulk
##   COUNTS, SIZES    of make grid: other numbers and sizes of objects (1,10 and 100B,10KB)
##   BUDGET, LIMIT    of make grid: how long all may take (60m); how many seconds a load may
##   CONDITIONS       of make ladder: arq, slow, unknown (all that it can unless given), or none
##   DELAYS           of make packets: what is added to the round trip, in ms (0,10,20,50)
##   CAMPAIGN         the folder in results/ (the time of day)
##   SEED             what the order of the runs is drawn from
##   FROM             a recording in one of these formats:
##   EYELEVEL_CACHE   where setup installs (~/.cache/eyelevel)
