# Eyelevel's front door. Every target is a thin line over a command that can be run by hand: `make -n TARGET` shows it.

# What can be given. None of it is taken from the environment, where such short names mean something else.
CAMPAIGN_VARIABLES := NET PROTO SITES RUNS MAX_RUNS SEED FILMS HYPOTHESES QUALITY BROWSER DEVICE SHELLS LANES DASK CAMPAIGN \
	SERVER_RTTS THINK_TIME CERTIFICATES ALPN BUDGET PACKAGE
STUDY_VARIABLES := SITE SITES NET PROTO RUNS SEED CAMPAIGN BROWSER DEVICE LANES DASK PRESET COUNTS SIZES LIMIT BUDGET DELAYS \
	CONDITIONS AGAINST MIXES SECONDS VIDEOS PLAYER
INTEROP_VARIABLES := SERVER BROWSER TEST LOADS INTO
STUDY_VARIABLES += SPREAD SERVERS
PROXIES := http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
NO_OPTIONS := FROM SERVERS BROWSERS HOPS REPEATABLE YES TUNING EYELEVEL_TUNING EYELEVEL_CACHE EYELEVEL_CORPUS EYELEVEL_FILMS PYTHON $(PROXIES)
$(foreach v,$(CAMPAIGN_VARIABLES) $(STUDY_VARIABLES) $(INTEROP_VARIABLES) FROM AS LICENCE URL LIVE TO SERVE STUDY RUN AGAINST METRIC THRESHOLD SERVERS BROWSERS HOPS REPEATABLE YES ALLOW_PRIVATE TUNING,\
	$(if $(filter environment,$(origin $v)),$(eval override $v :=)$(eval unexport $v)))

# A value is text, in which make expands nothing ("$c", "$(shell …)") and which reaches programs as it was given.
GIVEN := $(foreach v,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $v))),$v))
$(foreach v,$(GIVEN),$(eval override export $v := $$(value $v)))
# Tests call make, too; what was given here is not meant for them.
MAKEOVERRIDES :=
define line_break


endef
$(foreach v,$(GIVEN),$(if $(findstring $(line_break),$(value $v)),$(error the value of $v has a line break)))

absolute = $(if $(filter /%,$(firstword $1)),$1,$(CURDIR)/$1)
CACHES := $(or $(value XDG_CACHE_HOME),$(value HOME)/.cache)
override EYELEVEL_CACHE := $(call absolute,$(or $(value EYELEVEL_CACHE),$(CACHES)/eyelevel))
export EYELEVEL_CACHE
# A folder with networks.toml or protocols.toml of one's own.
override EYELEVEL_TUNING := $(if $(TUNING),$(call absolute,$(TUNING)),$(value EYELEVEL_TUNING))
export EYELEVEL_TUNING
PYTHON := $(EYELEVEL_CACHE)/venv/bin/python

# A value as one word of a shell's command line, whatever is in it.
quote = '$(subst ','\'',$1)'
EYELEVEL = $(call quote,$(PYTHON)) -m eyelevel
# Without bytecode, each of the hundreds of programs that tests start compiles the project again.
PYTEST = env -u PYTHONDONTWRITEBYTECODE $(call quote,$(PYTHON)) -m pytest

# Options for those of the variables that have a value, each after a blank; and a value alone. What is left out, the
# command chooses.
lower = $(shell printf %s $(call quote,$1) | tr A-Z_ a-z- | tr -cd a-z0-9-)
present = $(strip $(foreach v,$1,$(if $(value $v),$v)))
options = $(if $(call present,$1), $(foreach v,$(call present,$1),--$(call lower,$v) $(call quote,$(value $v))))
argument = $(if $(value $1), $(call quote,$(value $1)))

# Any other variable of the command line is passed on, too (DEPTH=3 becomes --depth 3): the command knows if it is one.
others = $(filter-out $1 $(NO_OPTIONS),$(GIVEN))
all_options = $(call options,$1 $(call others,$1))
AS_RECORDED = $(if $(filter no,$(REPEATABLE)), --as-recorded)
AGREED = $(if $(filter 1 yes,$(YES)), --yes)
PRIVATE = $(if $(filter yes,$(ALLOW_PRIVATE)), --allow-private)

# What the set-up installs beside what everybody needs: all that `make setup` is asked for, and for other targets what
# they use of it.
comma := ,
names = $(subst $(comma), ,$(value $1))
asked = $(foreach n,$(call names,$2),$1/$n)
optional = $(patsubst setup/optional/%.sh,%,$(wildcard $(patsubst %,setup/optional/%.sh,$1)))
OPTIONAL = $(if $(filter setup,$(MAKECMDGOALS)),\
	$(call asked,servers,SERVERS) $(call asked,browsers,BROWSERS) $(call asked,shells,SHELLS) $(call asked,hops,HOPS),\
	$(call optional,$(call asked,browsers,BROWSER) $(call asked,shells,SHELLS) $(call asked,servers,SERVERS)) \
	$(if $(filter docs,$(MAKECMDGOALS)),documents/mkdocs) $(if $(filter proof,$(MAKECMDGOALS)),proof/format_checkers))

# Studies say their own commands (studies/*/__init__.py), which are targets here.
STUDIES := $(shell sed -n 's/^ *command="\([^"]*\)",$$/\1/p' studies/*/__init__.py)

# What a target cannot do without is asked for before anything is done.
needs = $(if $(filter $1,$(MAKECMDGOALS)),$(foreach v,$2,$(if $(value $v),,$(error $1 needs $v, as in: $3))))
$(call needs,import,FROM,make import FROM=recordings/www.yelp.com)
$(call needs,export,SITE AS,make export SITE=demo-news AS=wacz)
$(call needs,convert-trace,FROM INTO,make convert-trace FROM=log.csv TIME=time RATE=mbps RTT=rtt_ms INTO=down.csv)
$(call needs,status,CAMPAIGN,make status CAMPAIGN=try)
$(call needs,review,CAMPAIGN,make review CAMPAIGN=try)
$(call needs,report,CAMPAIGN,make report CAMPAIGN=try)
$(call needs,package,CAMPAIGN,make package CAMPAIGN=try)
$(call needs,waterfall,CAMPAIGN,make waterfall CAMPAIGN=try PROTO=tcp,quic)
$(call needs,user-study,CAMPAIGN,make user-study CAMPAIGN=try)
$(call needs,compare,A B,make compare A=before B=after WORSE_THAN=3%)
$(call needs,quiet-times,CAMPAIGN,make quiet-times CAMPAIGN=try)
$(call needs,figures,CAMPAIGN,make figures CAMPAIGN=try)
$(if $(filter probe-network,$(MAKECMDGOALS)),$(if $(TO)$(SERVE),,$(error probe-network needs TO, as in: make probe-network TO=192.0.2.7; or SERVE, on the other machine)))
$(if $(filter answer,$(MAKECMDGOALS)),$(if $(URL)$(SITE)$(CAMPAIGN),,$(error answer needs URL or SITE, as in: make answer URL=https://www.gnu.org/)))
$(call needs,replay,SITE NET PROTO,make replay SITE=demo-news NET=lte PROTO=tcp)

.DEFAULT_GOAL := help
.PHONY: help answer setup test quick check docs soak proof record import export close site-info replay campaign status review report package reference figures user-study waterfall compare quiet-times networks convert-trace probe-network validate interop devices lanes cluster-keys completion clean $(STUDIES)

help: ## show this help
	@awk '/^[a-z0-9-]+:.*## / { sub(/:.*## /, " "); printf "  make %-12s", $$1; sub(/^[a-z0-9-]+/, ""); print } \
		/^##$$/ && !studies++ { while (("cat studies/*/__init__.py" | getline line) > 0) { \
			if (line ~ /^ *command="/) { split(line, part, "\""); printf "  make %-12s", part[2] } \
			if (line ~ /^ *title="/) { split(line, part, "\""); print " " part[2] ", and write the report" } } } \
		/^##/ { print substr($$0, 4) } \
		/^##   FROM/ { while (("cat record/formats/*.py" | getline line) > 0) { \
			if (line ~ /^DESCRIPTION = "/) { split(line, part, "\""); print "                     " part[2] } } }' $(firstword $(MAKEFILE_LIST))

setup: ## install what the testbed needs; every target below does it first, once
	@setup/setup.sh$(foreach n,$(OPTIONAL), $(call quote,$n))

test: setup ## run all tests
	@setup/cargo test --release --locked --quiet
	@test ! -x $(call quote,$(EYELEVEL_CACHE)/bin/quinn_server) || setup/cargo --in servers/quinn test --release --locked --quiet
	@$(PYTEST) -n 4 --durations 20 --durations-min 0

quick: ## run the tests that need no namespaces, network or browser, in some 90 seconds
	@test -x $(call quote,$(PYTHON)) || { echo "eyelevel: nothing is installed yet; run 'make setup'" >&2; exit 1; }
	@$(PYTEST) -n auto --maxprocesses 4 \
		-m 'not (needs_namespaces or needs_browser or needs_user_namespaces or slow)'

check: setup ## run the checkers: style, types, layers, words
	@setup/check

docs: setup ## make a site of these documents in build/docs; fails where a link leads nowhere
	@NO_MKDOCS_2_WARNING=1 $(call quote,$(EYELEVEL_CACHE)/bin/mkdocs) build --strict --quiet
	@echo "build/docs/index.html; with its search: python3 -m http.server --directory build/docs"

soak: setup ## run all tests TIMES times, beside BUSY busy processes, each a line in docs/soak.csv
	@PYTHONPATH=.:tests $(call quote,$(PYTHON)) -m support.soak$(call options,TIMES BUSY)

proof: setup ## run what takes hours: faults by the dozen, fuzzing, whole corpora; installs TeX
	@setup/packages proof
	@setup/unpack clusters >/dev/null
	@$(PYTEST) -n 3 tests/proof tests/analysis/report/test_latex.py

answer: setup ## say what HTTP/3 would change for the page URL, or a SITE, behind NET, within BUDGET; goes on when run again
	@$(EYELEVEL) answer$(PRIVATE)$(call options,SITE NET RUNS BUDGET SERVER_RTTS THINK_TIME CAMPAIGN)$(call argument,URL)

record: setup ## load SITES, a URL or a file that lists some (sites.txt), from the web, make sites of them, and close these
	@$(EYELEVEL) record$(PRIVATE)$(call options,LIVE NET)$(call argument,SITES); status=$$?; \
		$(EYELEVEL) close --recorded$(PRIVATE) && exit $$status

import: setup ## make a site of the recording FROM, which begins at URL if given
	@$(EYELEVEL) import$(call options,URL)$(call argument,FROM)

export: setup ## write SITE in another format, AS har, mahimahi or wacz, to INTO (SITE.har, …)
	@$(EYELEVEL) export --format $(call quote,$(AS)) $(call quote,$(SITE)) $(call quote,$(or $(value INTO),$(SITE).$(AS)))

close: setup ## find out what SITES, or all not closed yet, ask for that was not recorded; fetch it if possible
	@$(EYELEVEL) close$(PRIVATE)$(call argument,SITES)

site-info: setup ## tell what the recorded sites are, and draw the paper's Figure 1 of them
	@$(EYELEVEL) site-info

replay: setup ## open a shell as the client of SITE, behind the network NET, over PROTO
	@$(EYELEVEL) replay$(call options,SITE NET PROTO SHELLS SERVER_RTTS THINK_TIME CERTIFICATES ALPN)

campaign: setup ## measure SITES over every NET and PROTO, or go on with it; the result is results/CAMPAIGN
	@$(EYELEVEL) campaign$(call all_options,$(CAMPAIGN_VARIABLES))$(AS_RECORDED)$(AGREED)

status: setup ## tell how CAMPAIGN stands, also while it runs
	@$(EYELEVEL) status$(call argument,CAMPAIGN)

review: setup ## look at the films of CAMPAIGN, and accept or reject runs by eye
	@$(EYELEVEL) review$(call argument,CAMPAIGN)

report: setup ## write the report of CAMPAIGN, INTO a folder if given: a page with all tables, figures, and films of SITE
	@$(EYELEVEL) report$(call options,HYPOTHESES SITE INTO)$(call argument,CAMPAIGN)

package: setup ## write CAMPAIGN as a folder that can be cited (RO-Crate), INTO one if given, without films and logs
	@$(EYELEVEL) package$(call options,INTO LICENCE)$(call argument,CAMPAIGN)

reference: setup ## measure the campaign that data/reference.toml declares, or go on with it, and write it as data/reference
	@$(EYELEVEL) reference$(call all_options,BUDGET)

figures: setup ## draw the figures of CAMPAIGN alone
	@$(EYELEVEL) report --figures-only$(call options,HYPOTHESES SITE INTO)$(call argument,CAMPAIGN)

waterfall: setup ## show the requests over time of two PROTO of CAMPAIGN, for a SITE behind a NET, or of its runs RUN
	@$(EYELEVEL) waterfall$(call options,SITE NET PROTO RUN AGAINST METRIC THRESHOLD)$(call argument,CAMPAIGN)

user-study: setup ## write CAMPAIGN's films as a study for people, as STUDY (a TOML file) says; eyelevel user-study serve takes votes
	@$(EYELEVEL) user-study write$(call options,STUDY)$(call argument,CAMPAIGN)

compare: setup ## compare campaign B with campaign A; fails with 2 where B is more than WORSE_THAN (5%) slower
	@$(EYELEVEL) compare$(call options,A B WORSE_THAN INTO)

quiet-times: setup ## tell what shorter waits for further requests would have changed in CAMPAIGN
	@$(EYELEVEL) quiet-times$(call argument,CAMPAIGN)

networks: setup ## tell what the networks are (or NET), with their sources, and draw their rates and delays over time
	@$(EYELEVEL) networks$(call options,NET)

convert-trace: setup ## make a conditions file INTO x.csv of a trace or a log FROM (or, of such a file, a delivery trace)
	@$(EYELEVEL) convert-trace$(call argument,FROM)$(call all_options,INTO)

probe-network: setup ## measure the path to the machine TO, where SERVE=its address runs, as a network of yours
	@$(EYELEVEL) probe-network$(call all_options,TO SERVE)

validate: setup ## measure each NET and PROTO, and compare with its settings
	@$(EYELEVEL) validate$(call options,NET PROTO SHELLS SITES SERVER_RTTS)

interop: setup ## test every SERVER with every BROWSER, and write the table INTO a file if given
	@$(EYELEVEL) interop$(call options,$(INTEROP_VARIABLES))

devices: setup ## what the devices are; with SITTINGS=3, whether this machine can keep their paces
	@$(EYELEVEL) devices$(call all_options,SITTINGS)

lanes: setup ## measure how many runs this machine can make at once, undisturbed
	@$(EYELEVEL) lanes$(call options,BROWSER)

cluster-keys: setup ## make the certificates by which the machines of a cluster know each other
	@$(EYELEVEL) cluster-keys

$(STUDIES): setup
	@$(EYELEVEL) $@$(call all_options,$(STUDY_VARIABLES))$(AGREED)
	@$(EYELEVEL) report $(call quote,$(or $(CAMPAIGN),$(PRESET),$@))

completion: setup ## say how to make a shell complete eyelevel's commands, options and names
	@$(EYELEVEL) completion --help

clean: ## remove what setup installed, except for system packages; sites/ and results/ stay
	@setup/clean

##
## Variables, of which NET, PROTO and SITES of a campaign may be lists (a,b) or all:
##   NET              dsl, lte, da2gc, mss; also those of tuning/further (make networks) and TUNING
##   PROTO            tcp, tcp+, tcp+bbr, quic, quic+bbr; also those of tuning/further and TUNING
##   TUNING           a folder with a networks.toml, protocols.toml or devices.toml of yours
##   REPEATABLE       no: without the script that makes pages ask for the same on every load
##   YES              1: begin a campaign of more than a day without a question, though not all of it was named
##   ALLOW_PRIVATE    yes: make record and make close reach addresses that are not public, too
##   TO, SERVE        of make probe-network: the other machine; there, the address at which it is the other end
##   LIVE             of make record: how often each page is loaded without the recorder, too, behind this machine's NET
##   SITES, SITE      folders in sites/; of make record, a URL or a file of lines NAME URL
##   RUNS             how many of each site, network and protocol (31), or auto: until all is decided, MAX_RUNS at most
##   HYPOTHESES       what is asked, as a file (analysis/hypotheses.toml); a campaign keeps it before its first run
##   FILMS, QUALITY   all, sample or none; lossless or small: which films are kept once their metrics are
##   BROWSER          the browser: chromium (unless given) or firefox; of make campaign, a list: each loads all
##   DEVICE           desktop (unless given), or of make devices; of make campaign and make grid, a list
##   SHELLS           what emulates networks: ours, or mahimahi, upstream's shells; of make setup: install these
##   SERVER_RTTS      how far beyond the network each server is: off, recorded, recorded-12ms, or a file
##   THINK_TIME       how long servers take to answer: off, or recorded
##   CERTIFICATES     chains of certificates: off, which is short, or recorded, as long as those
##   ALPN             what servers speak over TCP: off, HTTP/2; or recorded, HTTP/1.1 where only that was
##   LANES            how many runs are made at once, each on cores of its own (1), or auto: as many as do not disturb
##   DASK             the scheduler of a cluster to measure on (tls://head:8786)
##   PRESET           of make grid: longlook, longlook-0rtt, longlook-hop, mobile, controlled, …
##   COUNTS, SIZES    of make grid: other numbers and sizes of objects (1,10 and 100B,10KB)
##   SPREAD           of make grid: over how many servers the objects of a page are spread (1,4)
##   AGAINST, MIXES   of make fairness: the protocol of the other flows; how many against how many (1x1,2x1)
##   SECONDS          of make fairness: for how long the flows of a run last; of make video: how long a play lasts
##   VIDEOS, PLAYER   of make video: qualities and rules of the player (hd720,dynamic); dash or hls
##   BUDGET           of make campaign, reference, grid, answer: how long all may take (60m, 2h15m)
##   PACKAGE          of make campaign: a package (make package) to go on from, where results/ has no such campaign
##   LIMIT            of make grid: how many seconds a load may
##   CONDITIONS       of make ladder: arq, slow, unknown (all that it can unless given), or none
##   SERVER, TEST     of make interop: servers and tests; there BROWSER may be a list, too
##   LOADS, INTO      of make interop: loads of each cell (1); the file that the table is written to
##   DELAYS           of make packets: what is added to the round trip, in ms (0,10,20,50)
##   RUN              of make waterfall: the runs themselves, by their folders (tcp/1-1,quic/1-1)
##   AGAINST          of make waterfall: another campaign, from which the second run is
##   METRIC           of make waterfall: the median run is the nearest to the median of this (SI and PLT together)
##   THRESHOLD        of make waterfall: from how many ms on a start or a duration counts as different
##   STUDY            of make user-study: what is asked, of whom, in which words (analysis/user_study/study.toml)
##   A, B, WORSE_THAN the campaigns that make compare compares, and how much slower B may be (5%)
##   CAMPAIGN         the folder in results/ (the time of day)
##   SEED             what the order of the runs is drawn from
##   SERVERS          of make setup: further servers to install; of make grid: to measure, too (caddy,quinn)
##   BROWSERS         of make setup: further browsers to install
##   HOPS             of make setup: programs of hops to install (haproxy)
##   LICENCE          of make package: of the numbers, as a URL (CC BY 4.0)
##   TIMES, BUSY      of make soak: how many runs (1), beside how many busy processes (0)
##   AS               of make export: har, mahimahi (a folder) or wacz
##   URL              of make answer: the page; of make import: the page to begin with, or which of a HAR, where the recording does not say so
##   FROM             a recording in one of these formats:
##   EYELEVEL_CACHE   where setup installs (~/.cache/eyelevel)
