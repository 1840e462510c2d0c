# Eyelevel's front door. Every target is a thin line over a command that can be run by hand: `make -n TARGET` shows it.

EYELEVEL_CACHE := $(abspath $(or $(EYELEVEL_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/eyelevel))
export EYELEVEL_CACHE
PYTHON := $(EYELEVEL_CACHE)/venv/bin/python

# Options for the variables that were given. What is left out, the command chooses.
option = $(if $($2),$1 '$($2)')
CAMPAIGN_OPTIONS = $(strip $(call option,--net,NET) $(call option,--proto,PROTO) $(call option,--sites,SITES) \
	$(call option,--runs,RUNS) $(call option,--max-runs,MAX_RUNS) $(call option,--seed,SEED) $(call option,--films,FILMS) \
	$(call option,--quality,QUALITY) $(call option,--dask,DASK) $(call option,--campaign,CAMPAIGN))

# What a target cannot do without is asked for before anything is done.
needs = $(if $(filter $1,$(MAKECMDGOALS)),$(foreach v,$2,$(if $($v),,$(error $1 needs $v, as in: $3))))
$(call needs,import,FROM,make import FROM=recordings/www.yelp.com)
$(call needs,status,CAMPAIGN,make status CAMPAIGN=try)
$(call needs,review,CAMPAIGN,make review CAMPAIGN=try)
$(call needs,replay,SITE NET PROTO,make replay SITE=demo-news NET=lte PROTO=tcp)

.DEFAULT_GOAL := help
.PHONY: help setup test record import site-info replay campaign status review clean

help: ## show this help
	@awk '/^[a-z-]+:.*## / { sub(/:.*## /, " "); printf "  make %-10s", $$1; sub(/^[a-z-]+/, ""); print } \
		/^##/ { print substr($$0, 4) }' $(firstword $(MAKEFILE_LIST))

setup: ## install what the testbed needs; every target below does it first, once
	@setup/setup.sh

test: setup ## run all tests
	@setup/cargo test --release --locked --quiet
	@setup/as-root '$(PYTHON)' -m pytest

record: setup ## load SITES, a URL or a file that lists some (sites.txt), from the web and make sites of them
	@'$(PYTHON)' -m record record $(if $(SITES),'$(SITES)')

import: setup ## make a site of the recording FROM
	@'$(PYTHON)' -m record import '$(FROM)'

site-info: setup ## tell what the recorded sites are, and draw the paper's Figure 1 of them
	@'$(PYTHON)' -m analysis.sites

replay: setup ## open a shell as the client of SITE, behind the network NET, over PROTO
	@setup/as-root '$(PYTHON)' -m replay --site '$(SITE)' --net '$(NET)' --proto '$(PROTO)'

campaign: setup ## measure SITES over every NET and PROTO, or go on with it; the result is results/CAMPAIGN
	@setup/as-root '$(PYTHON)' -m measure $(CAMPAIGN_OPTIONS)

status: setup ## tell how CAMPAIGN stands, also while it runs
	@'$(PYTHON)' -m measure.status '$(CAMPAIGN)'

review: setup ## look at the films of CAMPAIGN, and accept or reject runs by eye
	@'$(PYTHON)' -m measure.review '$(CAMPAIGN)'

clean: ## remove what setup installed, except for system packages; sites/ and results/ stay
	@setup/clean

##
## Variables, of which NET, PROTO and SITES of a campaign may be lists (a,b) or all:
##   NET              dsl, lte, da2gc, mss
##   PROTO            tcp, tcp+, tcp+bbr, quic, quic+bbr
##   SITES, SITE      folders in sites/; of make record, a URL or a file of lines NAME URL
##   RUNS             how many of each site, network and protocol (31), or auto: until all is decided, MAX_RUNS at most
##   FILMS, QUALITY   all, sample or none; lossless or small: which films are kept once their metrics are
##   DASK             the scheduler of a Dask cluster to measure on (tcp://scheduler:8786)
##   CAMPAIGN         the folder in results/ (the time of day)
##   SEED             what the order of the runs is drawn from
##   FROM             a recording: a folder of Mahimahi's save.* files or of raw responses, a WARC, or a HAR
##   EYELEVEL_CACHE   where setup installs (~/.cache/eyelevel)
