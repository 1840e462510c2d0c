"""Every option and argument of the program's commands; options of a single study are in its own folder.

click's parameters, shell completion, the variables of make and the pages of docs/options/ are all derived from this
table. If a value comes from a module that takes a second to load, the table only names it (`base.late`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import click

from base.late import late, late_value
from base.options import ABSOLUTE_FOLDER, ABSOLUTE_PATH, APPENDED_FILE, COUNT, FILE, FOLDER, NEW_FOLDER, PATH, Option
from base.places import ANSWER_PREFIX, RESULTS, SITES
from dataset.settings import CampaignSettings
from eyelevel.defaults import (
    ANSWER_BUDGET,
    ANSWER_NETWORKS,
    CLOSE_LOADS,
    CLOSE_NETWORK,
    CLOSE_PROTOCOLS,
    CORPUS_VARIABLE,
    DECLARATION,
    LANES_SITE,
    LICENCE,
    MOST_MB,
    NETWORKS,
    NOISES,
    PROTOCOLS,
    QUIET_TIMES_MS,
    RUNS,
    USER_STUDY_ADDRESS,
    USER_STUDY_PORT,
)
from tuning.defaults import DEFAULT_BROWSER, DEFAULT_SHELLS, OFF, RECORDED, REPEATS
from tuning.devices import DESKTOP
from tuning.settings import USER_FOLDER

# Stands for the commands of all studies.
STUDY = "*"
# The commands that measure a campaign of pages, which has no study.
OF_PAGES = ("campaign", "ab")
MEASURING = (*OF_PAGES, STUDY)
WITH_RESULTS = (*MEASURING, "try", "answer", "reference")
# Other commands that read settings of networks, protocols or devices.
OF_SETTINGS = (
    *("answer", "record", "close", "replay", "load", "reference"),
    *("networks", "protocols", "devices", "validate", "lanes"),
)
OF_A_CAMPAIGN = ("status", "results", "review", "report", "package", "waterfall", "user-study write")
# The commands that print a table.
WITH_TABLES = (
    *(
        "status",
        "results",
        "compare",
        "history",
        "combine",
        "quiet-times",
        "site-info",
        "networks",
        "protocols",
        "devices",
    ),
    *("validate", "interop", "lanes", "doctor"),
)
OFF_OR_RECORDED = (OFF, RECORDED)

USUAL_FILMS, USUAL_QUALITY = late_value("films.policy:ALL_FILMS.kept"), late_value("films.policy:ALL_FILMS.quality")
KEPT, QUALITIES = late_value("films.policy:KEPT"), late_value("films.policy:QUALITIES")
WRITABLE = late("record.formats:writable_formats")
BROWSERS, SHELLS = late("browsers.registry:all_browsers"), late("replay.shells.registry:all_shells")
NETWORK_NAMES, PROTOCOL_NAMES = late("eyelevel.completion:network_names"), late("eyelevel.completion:protocol_names")
SITE_NAMES, CAMPAIGN_NAMES = late("eyelevel.completion:site_names"), late("eyelevel.completion:campaign_names")
BROWSER_NAMES, DEVICE_NAMES = late("eyelevel.completion:browser_names"), late("eyelevel.completion:device_names")

HYPOTHESES_FILE = "analysis/hypotheses.toml"
TRUST = "Trust the certificate authority in this PEM file instead of the public ones."

OPTIONS: tuple[Option, ...] = (
    # Campaigns, sites, networks and protocols.
    Option(
        "CAMPAIGN",
        "A folder in results/, or the path of a campaign.",
        OF_A_CAMPAIGN,
        is_required=True,
        names=CAMPAIGN_NAMES,
    ),
    Option(
        "CAMPAIGN",
        "Folders in results/, or paths of campaigns.",
        ("quiet-times", "combine"),
        is_required=True,
        is_list=True,
        names=CAMPAIGN_NAMES,
        metavar="CAMPAIGN...",
        parameter="campaigns",
    ),
    Option(
        "--a",
        "The campaign that B is compared with.",
        ("compare",),
        is_required=True,
        names=CAMPAIGN_NAMES,
        parameter="first",
        metavar="CAMPAIGN",
    ),
    Option(
        "--b",
        "The campaign that is compared with A.",
        ("compare",),
        is_required=True,
        names=CAMPAIGN_NAMES,
        parameter="second",
        metavar="CAMPAIGN",
    ),
    Option(
        "A",
        "A setting that B is compared with, in variables of 'make campaign': 'PROTO=quic BROWSER=firefox'.",
        ("ab",),
        is_required=True,
        parameter="first",
    ),
    Option("B", "The setting that is compared with A.", ("ab",), is_required=True, parameter="second"),
    Option("URL", "The page, such as https://www.gnu.org/.", ("answer",), metavar="[URL]"),
    Option(
        "SITES",
        "URLs, or files with lines NAME URL; by default sites.txt.",
        ("record",),
        is_list=True,
        parameter="sources",
        metavar="[URL|FILE]...",
    ),
    Option(
        "SITES",
        "Folders in sites/, or all; by default those that are not complete.",
        ("close",),
        is_list=True,
        names=SITE_NAMES,
        parameter="names",
        metavar="[SITE]...",
    ),
    Option("SITES", "Demo sites; by default all.", ("demo",), is_list=True, parameter="names", metavar="[SITE]..."),
    Option("SITE", "A folder in sites/.", ("export", "edit"), is_required=True, names=SITE_NAMES, parameter="name"),
    Option(
        "FROM",
        "A recording; 'eyelevel import --help' lists the formats.",
        ("import",),
        is_required=True,
        type=PATH,
        parameter="source",
    ),
    Option("FROM", "A trace or a log.", ("convert-trace",), is_required=True, type=PATH, parameter="from_"),
    Option("FIGURE", "A name of the list; unless given, the list is printed.", ("reproduce",), metavar="[FIGURE]"),
    Option("FOLDER", "A package.", ("verify",), is_required=True, type=PATH),
    Option("FOLDER", "The folder to make.", ("init",), is_required=True, type=FOLDER),
    Option("FOLDER", "A folder with comparisons (ab.json), in it or below.", ("history",), is_required=True, type=PATH),
    Option("FOLDER", "The folder to write.", ("simulate",), is_required=True, type=FOLDER),
    Option("FOLDER", "A user study, or its campaign.", ("user-study serve",), is_required=True, type=PATH),
    Option("ADDRESS", "An address of this machine, with or without a port.", ("scheduler",), is_required=True),
    Option("SCHEDULER", "The scheduler's address.", ("worker",), is_required=True),
    Option("SHELL", "The shell.", ("completion",), is_required=True, choices=("bash", "zsh", "fish")),
    Option(
        "COMMAND",
        "The command to run; by default a shell.",
        ("replay",),
        is_list=True,
        type=click.UNPROCESSED,
        metavar="[COMMAND]...",
    ),
    Option(
        "--net",
        "Networks (a,b), or all (the paper's): 'eyelevel networks' lists them.",
        MEASURING,
        usual=NETWORKS,
        names=NETWORK_NAMES,
    ),
    Option("--net", "Networks (a,b), or all.", ("answer",), usual=ANSWER_NETWORKS, names=NETWORK_NAMES),
    Option(
        "--net",
        "Networks (a,b), all or none.",
        ("validate",),
        usual="all, or none if anything else is named",
        names=NETWORK_NAMES,
    ),
    Option("--net", "Networks (a,b), or all (the paper's).", ("networks",), usual="every one", names=NETWORK_NAMES),
    Option(
        "--net",
        "Networks (a,b) on which to measure how many loads can share a lane's processors.",
        ("lanes",),
        names=NETWORK_NAMES,
    ),
    Option("--net", "A network.", ("replay",), is_required=True, names=NETWORK_NAMES),
    Option("--net", "The network on which sites are replayed.", ("close",), default=CLOSE_NETWORK, names=NETWORK_NAMES),
    Option("--net", "With --live: the network that this machine is on.", ("record",), names=NETWORK_NAMES),
    Option("--net", "The network of the runs, if the campaign has several.", ("waterfall",), names=NETWORK_NAMES),
    Option(
        "--proto",
        "Protocols (a,b), or all (the paper's): 'eyelevel protocols' lists them. Changes are relative to the first.",
        ("campaign", STUDY),
        usual=PROTOCOLS,
        names=PROTOCOL_NAMES,
    ),
    Option("--proto", "The protocol, if A and B share it.", ("ab",), names=PROTOCOL_NAMES),
    Option(
        "--proto",
        "Protocols (a,b), all or none.",
        ("validate",),
        usual="all, or none if anything else is named",
        names=PROTOCOL_NAMES,
    ),
    Option(
        "--proto", "Protocols (a,b), or all (the paper's).", ("protocols",), usual="every one", names=PROTOCOL_NAMES
    ),
    Option("--proto", "A protocol.", ("replay",), is_required=True, names=PROTOCOL_NAMES),
    Option("--proto", "The protocol of the replay.", ("load",), is_required=True, names=PROTOCOL_NAMES),
    Option("--proto", "Protocols (a,b).", ("close",), default=CLOSE_PROTOCOLS, names=PROTOCOL_NAMES),
    Option(
        "--proto", "One protocol, or two (a,b): the median run of each is shown.", ("waterfall",), names=PROTOCOL_NAMES
    ),
    Option(
        "--sites",
        "Sites: folders in sites/, demo sites, pages of the set web; web (its 40 pages), or all (each folder in "
        "sites/, or the demo sites if there is none).",
        OF_PAGES,
        usual="all",
        names=SITE_NAMES,
    ),
    Option("--sites", "Folders in sites/, demo sites or pages of the set web (a,b).", (STUDY,), names=SITE_NAMES),
    Option(
        "--sites",
        "Sites (a,b), or web: the set's 40 pages, with their numbers beside those of today's web.",
        ("site-info",),
        usual="the folders in sites/",
        names=SITE_NAMES,
    ),
    Option(
        "--sites",
        "Sites (a,b) whose servers' extra round-trip times (--server-rtts) are measured; by default nothing else is.",
        ("validate",),
        names=SITE_NAMES,
    ),
    Option(
        "--sites",
        "With --net: sites (a,b) to load; choose the heaviest sites of your planned campaigns.",
        ("lanes",),
        default=LANES_SITE,
        names=SITE_NAMES,
    ),
    Option("--site", "A folder in sites/.", ("replay",), is_required=True, names=SITE_NAMES, parameter="site_name"),
    Option(
        "--site", "The site that is replayed.", ("load",), is_required=True, names=SITE_NAMES, parameter="site_name"
    ),
    Option("--site", "A folder in sites/; with URL, the name for the page's site.", ("answer",), names=SITE_NAMES),
    Option(
        "--site",
        "The site whose films are shown.",
        ("report",),
        usual="the one whose SI and PLT disagree most",
        names=SITE_NAMES,
    ),
    Option("--site", "The site of the runs, if the campaign has several.", ("waterfall",), names=SITE_NAMES),
    Option(
        "--sites-folder",
        "Another folder of sites.",
        ("answer", "close"),
        type=FOLDER,
        default=SITES,
        parameter="folder",
    ),
    Option(
        "--tuning",
        "A folder with your own networks.toml, protocols.toml or devices.toml.",
        (*MEASURING, *OF_SETTINGS),
        type=ABSOLUTE_PATH,
        environment=USER_FOLDER,
    ),
    # How much is measured.
    Option(
        "--runs",
        "Runs for each site, network and protocol, or auto: measure until the verdicts are clear.",
        ("campaign",),
        usual=str(RUNS),
    ),
    Option("--runs", "Runs for each site, network and protocol.", (STUDY,), type=COUNT),
    Option(
        "--runs",
        "Runs of A, and of B, for each site and network.",
        ("ab",),
        type=COUNT,
        usual=f"as many as fit into --budget; without one, {RUNS}",
    ),
    Option(
        "--runs",
        "Runs for each protocol on each network, or auto: measure until the verdict is clear.",
        ("answer",),
        usual="auto",
    ),
    Option("--max-runs", "With --runs auto: the maximum number of runs.", ("campaign",), type=COUNT, usual=str(RUNS)),
    Option(
        "--seed", "Seed for the order of runs and for packet losses.", MEASURING, type=int, usual="1", setting="seed"
    ),
    Option(
        "--repeats",
        "How often to repeat a run that does not count.",
        OF_PAGES,
        type=click.IntRange(min=0),
        usual=str(REPEATS),
        setting="repeats",
    ),
    Option(
        "--budget",
        "Time limit (90s, 60m, 2h15m), validation included. The same command resumes.",
        (*OF_PAGES, "reference"),
    ),
    Option(
        "--budget", "Time limit (90s, 60m, 2h15m); sets the maximum number of runs.", ("answer",), usual=ANSWER_BUDGET
    ),
    Option("--loads", "Loads for each protocol.", ("close",), type=COUNT, default=CLOSE_LOADS),
    Option("--loads", "Loads for each cell of the table.", ("interop",), type=COUNT, default=1),
    Option(
        "--live",
        "Also load each page this many times without the recorder, and keep the times for 'eyelevel fidelity'.",
        ("record",),
        type=COUNT,
    ),
    Option("--sittings", "Calibrate each device this many times, and test its pace.", ("devices",), type=COUNT),
    # How pages are loaded and served.
    Option(
        "--browser",
        "Browsers (a,b), or all. A build of your own: KIND:/path, or NAME=KIND:/path:/driver.",
        ("campaign",),
        usual=DEFAULT_BROWSER,
        names=BROWSER_NAMES,
    ),
    Option("--browser", "The browser, or a build (KIND:/path).", (STUDY,), usual=DEFAULT_BROWSER, names=BROWSER_NAMES),
    Option("--browser", "The browser, if A and B share it.", ("ab",), usual=DEFAULT_BROWSER, names=BROWSER_NAMES),
    Option("--browser", "The browser.", ("lanes",), choices=BROWSERS, default=DEFAULT_BROWSER),
    Option("--browser", "The browser, or a build (KIND:/path).", ("load",), default=DEFAULT_BROWSER),
    Option("--browser", "Browsers (a,b), or builds (KIND:/path).", ("interop",), usual="all", names=BROWSER_NAMES),
    Option(
        "--device", "Devices (a,b): 'eyelevel devices' lists them.", ("campaign",), usual=DESKTOP, names=DEVICE_NAMES
    ),
    Option("--device", "The device, if A and B share it.", ("ab",), usual=DESKTOP, names=DEVICE_NAMES),
    Option("--device", "The device: 'eyelevel devices' lists them.", (STUDY,), usual=DESKTOP, names=DEVICE_NAMES),
    Option("--mobile", "Load the pages as on a phone.", ("record",), is_flag=True),
    Option(
        "--repeatable/--as-recorded",
        "Whether to insert the script that makes a page send the same requests on every load.",
        OF_PAGES,
        usual="repeatable",
        setting="repeatable",
    ),
    Option(
        "--repeatable/--as-recorded",
        "Whether to insert the script that makes a page send the same requests on every load.",
        ("close",),
        default=True,
    ),
    Option(
        "--repeatable/--as-recorded",
        "Whether to insert the script that makes a page send the same requests on every load.",
        ("replay",),
        default=False,
    ),
    Option(
        "--shells",
        "Shells that emulate networks; mahimahi: the upstream shells, which 'make setup SHELLS=mahimahi' installs.",
        OF_PAGES,
        choices=SHELLS,
        usual=DEFAULT_SHELLS,
        setting="shells",
    ),
    Option(
        "--shells",
        "Shells that emulate networks; mahimahi: the upstream shells, which 'make setup SHELLS=mahimahi' installs.",
        ("replay", "validate"),
        choices=SHELLS,
        default=DEFAULT_SHELLS,
    ),
    *(
        Option(
            "--server-rtts",
            "Extra round-trip time of servers: off (none); recorded (as recorded, minus that of the nearest server); "
            "recorded-12ms (as recorded, minus 12 ms); or a file (docs/networks.md).",
            commands,
            usual=OFF if chooses else "",
            default=None if chooses else OFF,
            setting="server_rtts",
        )
        for commands, chooses in (((*OF_PAGES, "answer"), True), (("replay", "validate"), False))
    ),
    *(
        Option(
            name,
            text,
            commands,
            choices=OFF_OR_RECORDED,
            usual=OFF if chooses else "",
            default=None if chooses else OFF,
            setting=name.strip("-").replace("-", "_"),
        )
        for name, text, several in (
            (
                "--think-time",
                "Time that servers take to answer: off (none) or recorded (as recorded).",
                (*OF_PAGES, "answer"),
            ),
            (
                "--certificates",
                "Certificate chains: off (one short certificate) or recorded (as long as recorded).",
                OF_PAGES,
            ),
            (
                "--alpn",
                "Protocol over TCP: off (HTTP/2) or recorded (HTTP/1.1 where only that was recorded).",
                OF_PAGES,
            ),
        )
        for commands, chooses in ((several, True), (("replay",), False))
    ),
    Option("--limit", "Time limit of a load (s).", ("load",), type=float, default=300.0, parameter="limit_s"),
    Option(
        "--quiet-ms",
        "Time without responses after which the page has finished (ms).",
        ("load",),
        default=late_value("browsers.browsertime.configuration:QUIET_MS"),
        type=int,
    ),
    Option(
        "--quiet-ms",
        "Quiet times to try (ms).",
        ("quiet-times",),
        default=",".join(map(str, QUIET_TIMES_MS)),
        parameter="candidates",
    ),
    Option("--request-log", "Append a line for each request to this file.", ("replay",), type=APPENDED_FILE),
    # Films.
    Option("--films", "Films to keep once their metrics are computed.", OF_PAGES, choices=KEPT, usual=USUAL_FILMS),
    Option("--quality", "Quality of the films that are kept.", OF_PAGES, choices=QUALITIES, usual=USUAL_QUALITY),
    Option("--film/--no-film", "Whether to film the load.", ("load",), default=True),
    Option("--film", "Film the loads, and compare their last frames.", ("close",), is_flag=True),
    Option("--film-cores", "Processor cores reserved for filming, separated by commas.", ("load",)),
    # Hypotheses and questions.
    Option(
        "--hypotheses",
        "A file of hypotheses, which the campaign copies before its first run.",
        ("campaign",),
        type=PATH,
        usual=HYPOTHESES_FILE,
    ),
    Option(
        "--hypotheses",
        "A file of hypotheses to test instead of the campaign's own; they count as post hoc.",
        ("report",),
        type=PATH,
        usual="those that the campaign declared",
        parameter="file",
    ),
    Option("--worse-than", "How much slower B may be than A.", ("compare",), default="5%"),
    Option(
        "--worse-than",
        "How much slower B may be than A.",
        ("ab",),
        usual="B is worse if it is slower, and not equivalent",
    ),
    Option(
        "--decide",
        "End with status 4 unless B is shown to be worse or within the threshold.",
        ("compare",),
        is_flag=True,
    ),
    Option("--decide", "End with status 4 unless all comparisons are decided.", ("ab",), is_flag=True),
    Option("--decide", "End with status 4 if an alarm is not possible in all series.", ("history",), is_flag=True),
    Option(
        "--false-alarms",
        "Number of false alarms a year, over all series of a comparison.",
        ("history",),
        type=click.FloatRange(0.001, 52),
        default=0.2,
    ),
    Option(
        "--per-year",
        "Number of entries a year (52: weekly).",
        ("history",),
        type=click.FloatRange(1, 10_000),
        default=52.0,
    ),
    Option(
        "--since",
        "Begin the series on this day: after a change that you accept.",
        ("history",),
        type=click.DateTime(["%Y-%m-%d"]),
        metavar="YYYY-MM-DD",
    ),
    Option(
        "--study",
        "Questions, groups and wording: an edited copy of analysis/user_study/study.toml.",
        ("user-study write",),
        type=PATH,
        parameter="file",
    ),
    Option(
        "--metric",
        "The metric (si, plt) by which the median run is chosen.",
        ("waterfall",),
        usual="si and plt together",
    ),
    Option(
        "--threshold",
        "Mark starts and durations that differ by more than this (ms).",
        ("waterfall",),
        type=click.FloatRange(min=0),
    ),
    Option(
        "--run",
        "Runs to show instead of the median ones, by the ends of their paths: tcp+/1-1,quic/2-1, or "
        "demo-news/lte/quic/2-1.",
        ("waterfall",),
    ),
    Option(
        "--against",
        "Another campaign, from which to take the second run.",
        ("waterfall",),
        names=CAMPAIGN_NAMES,
        metavar="CAMPAIGN",
    ),
    # Where the campaign is measured, and how it begins.
    Option(
        "--campaign",
        "The folder in results/.",
        MEASURING,
        usual="the date and time",
        names=CAMPAIGN_NAMES,
        parameter="name",
    ),
    Option("--campaign", "The folder in results/.", ("try",), default="try", names=CAMPAIGN_NAMES, parameter="name"),
    Option(
        "--campaign",
        "The folder in results/.",
        ("answer",),
        usual=f"{ANSWER_PREFIX}SITE",
        names=CAMPAIGN_NAMES,
        parameter="name",
    ),
    Option(
        "--campaign",
        "The folder in results/.",
        ("reference",),
        usual="the declaration's name",
        names=CAMPAIGN_NAMES,
        parameter="name",
    ),
    Option(
        "--package",
        "Resume from this package if the campaign is not in results/.",
        ("campaign",),
        type=PATH,
    ),
    Option("--declaration", "The file that declares the campaign.", ("reference",), type=PATH, default=DECLARATION),
    Option(
        "--corpus",
        "The folder of the recordings.",
        ("reference",),
        type=PATH,
        usual=f"{CORPUS_VARIABLE}, or ../shared/corpus",
    ),
    Option(
        "--estimate",
        "Print the planned measurements and their duration; measure nothing.",
        ("reference",),
        is_flag=True,
    ),
    Option(
        "--lanes",
        "Blocks measured at once: 2 (each on its own cores), 2,mss:6 (on the network mss, 6 on each set of cores) or "
        "auto (as measured by 'eyelevel lanes'; docs/parallel.md).",
        MEASURING,
        usual="1",
    ),
    Option(
        "--lanes",
        "Blocks measured at once, each on its own cores, or auto (as measured by 'eyelevel lanes'; docs/parallel.md).",
        ("worker",),
        default="1",
    ),
    Option("--dask", "Measure on the workers of the cluster with this scheduler: tls://head:8786.", MEASURING),
    Option("--trust-workers", "Let the cluster's workers measure without 'make validate'.", MEASURING, is_flag=True),
    Option(
        "--insecure",
        "Allow tcp:// beyond this machine: anyone who reaches the cluster can then run programs as you on all of it.",
        (*MEASURING, "scheduler", "worker"),
        is_flag=True,
    ),
    Option(
        "--validate/--no-validate",
        "Measure networks and protocols first.",
        (*MEASURING, "answer", "reference"),
        default=True,
    ),
    Option(
        "--yes", "Start long campaigns without asking (docs/campaigns.md).", MEASURING, is_flag=True, parameter="agreed"
    ),
    Option("--plain", "Print plain lines, for logs.", WITH_RESULTS, is_flag=True),
    # Recording, completing, exporting and editing sites.
    Option("--name", "The name of the site.", ("import",), usual="the recording's name"),
    Option(
        "--url",
        "The page to start from; if a HAR has several pages, the one to import.",
        ("import",),
        usual="found in the recording",
    ),
    Option(
        "--keep-cookies",
        "Keep the values of cookies and the credentials in header fields, which the scripts of some pages need. By "
        "default, cookies get placeholder values of the same length, and fields with credentials are removed; URLs and "
        "bodies stay unchanged. Share only pages that were recorded without a login.",
        ("record", "import"),
        is_flag=True,
    ),
    Option(
        "--allow-changed",
        "Import a collection of web archives (WACZ) even if a file does not match its digest, and name the file.",
        ("import",),
        is_flag=True,
    ),
    Option(
        "--allow-private",
        "Let pages reach addresses that are not public. By default, pages reach public addresses only; a page recorded "
        "from a private or local address that you named also reaches addresses of that kind.",
        ("answer", "record", "close"),
        is_flag=True,
    ),
    Option(
        "--script",
        "A page script: steps to carry out in the page now and in each load of the site (docs/my-site.md).",
        ("record",),
        type=ABSOLUTE_PATH,
    ),
    Option("--origin-ca", TRUST, ("answer", "record", "close"), type=ABSOLUTE_PATH),
    Option(
        "--fetch/--no-fetch",
        "Fetch missing responses.",
        ("close",),
        usual="fetch for pages that were recorded with Eyelevel",
    ),
    Option(
        "--recorded",
        "Complete only sites that were recorded with Eyelevel, unless sites are named.",
        ("close",),
        is_flag=True,
    ),
    Option(
        "--as",
        "The format.",
        ("export",),
        is_required=True,
        choices=lambda: sorted(WRITABLE()),
        parameter="form",
    ),
    Option("--as", "The variant's name, after the @.", ("edit",), is_required=True, parameter="variant_name"),
    Option("--drop", "Drop the responses whose URLs match PATTERN.", ("edit",), is_list=True, metavar="TEXT"),
    Option(
        "--replace",
        "Replace the content by that of a file, in the recorded encoding: 'PATTERN -> FILE'.",
        ("edit",),
        is_list=True,
        metavar="TEXT",
    ),
    Option(
        "--delay",
        "Time that servers take to answer (ms), with --think-time recorded: 'PATTERN -> MS'.",
        ("edit",),
        is_list=True,
        metavar="TEXT",
    ),
    Option("--header", "Add a header field: 'PATTERN -> Name: value'.", ("edit",), is_list=True, metavar="TEXT"),
    Option(
        "--hint",
        "Add a Link field: 'PATTERN -> </a.css>; rel=preload; as=style'.",
        ("edit",),
        is_list=True,
        metavar="TEXT",
    ),
    # Networks: traces, drawings and probes.
    Option(
        "--heavy",
        "CellReplay's heavy trace of the direction, if FROM is its light trace.",
        ("convert-trace",),
        type=PATH,
    ),
    Option("--time", "If FROM is a log, its column with the time (s) or date.", ("convert-trace",)),
    Option("--rate", "The log's column with the rate (Mbit/s).", ("convert-trace",)),
    Option(
        "--rtt", "The log's column with the round-trip time (ms); each direction gets half of it.", ("convert-trace",)
    ),
    Option("--delay", "The log's column with the delay of one direction (ms).", ("convert-trace",)),
    Option("--loss", "The log's column with the share of lost packets.", ("convert-trace",)),
    # A longer drawing is unreadable, and would fill the memory.
    Option("--seconds", "Period to draw (s).", ("networks",), type=click.FloatRange(1, 3600), default=60.0),
    Option("--to", "Name or address of the other machine, which runs --serve.", ("probe-network",), parameter="host"),
    Option(
        "--serve",
        "Serve as the other end, at this address of this machine, until Ctrl-C.",
        ("probe-network",),
        parameter="address",
    ),
    Option(
        "--port",
        "Port for TCP and UDP.",
        ("probe-network",),
        type=click.IntRange(1, 65535),
        default=late_value("measure.probe.conversation:PORT"),
    ),
    Option(
        "--secret",
        "The file with the secret that both ends share.",
        ("probe-network",),
        type=PATH,
        usual="probe/secret in the cache",
    ),
    Option(
        "--most-mb",
        "Maximum traffic in both directions together; with --serve, for one probe (MB).",
        ("probe-network",),
        type=click.FloatRange(min=1),
        default=MOST_MB,
    ),
    Option("--name", "The name of the network.", ("probe-network",), usual="the host's"),
    Option("--quick", "Take a third of the time; loss rates are less precise.", ("probe-network",), is_flag=True),
    Option("--quick", "Measure fewer packet losses and fewer loads.", ("validate",), is_flag=True),
    # Interop.
    Option("--server", "Servers (a,b).", ("interop",), usual="all"),
    Option("--test", "Tests (a,b), as named in the table's header.", ("interop",), usual="all"),
    # Pages that the program serves.
    Option(
        "--reviewer",
        "Your name, which each of your decisions keeps; a package publishes it.",
        ("review",),
        usual="none",
    ),
    Option("--port", "The page's port on 127.0.0.1.", ("review",), type=int, default=0, usual="a free one"),
    Option("--open/--no-open", "Whether to open the page in a browser.", ("review",), default=True, parameter="browse"),
    Option("--host", "The address to listen on.", ("user-study serve",), default=USER_STUDY_ADDRESS),
    Option("--port", "The port; 0 for a free one.", ("user-study serve",), type=int, default=USER_STUDY_PORT),
    Option(
        "--host",
        "The address of this machine to listen on.",
        ("worker",),
        usual="the one from which SCHEDULER is reached",
    ),
    Option("--renew", "Replace existing keys; the old ones become useless.", ("cluster-keys",), is_flag=True),
    # Simulated campaigns.
    Option("--sites", "Number of sites.", ("simulate",), type=int, default=38),
    Option("--runs", "Runs for each setting.", ("simulate",), type=int, default=31),
    Option(
        "--quic",
        "Difference of QUIC's times from TCP's, as a share of TCP's.",
        ("simulate",),
        type=float,
        default=-0.05,
    ),
    Option("--noise", "Distribution of a run's noise.", ("simulate",), choices=NOISES, default="lognormal"),
    Option("--noise-sd", "Standard deviation of the noise, as a share.", ("simulate",), type=float, default=0.05),
    Option(
        "--drift", "Growth of times from the first run to the last, as a share.", ("simulate",), type=float, default=0.0
    ),
    Option("--seed", "Seed for all random numbers.", ("simulate",), type=int, default=1),
    Option(
        "--runs-seed",
        "Seed for the noise of runs; another one simulates a second measurement of the same pages.",
        ("simulate",),
        type=int,
    ),
    # Where results go.
    Option(
        "--results",
        "Another folder for results.",
        WITH_RESULTS,
        type=FOLDER,
        default=RESULTS,
    ),
    Option("--results", "The folder that keeps failed loads.", ("interop",), type=FOLDER, default=RESULTS / "interop"),
    Option("--into", "The folder to write.", ("load",), is_required=True, type=FOLDER, parameter="folder"),
    Option(
        "--into",
        "The file to write: .csv for conditions, else a delivery trace.",
        ("convert-trace",),
        is_required=True,
        type=FILE,
    ),
    Option("--into", "The file or folder to write.", ("export",), type=PATH, usual="SITE.FORMAT"),
    Option("--into", "The folder for the sites.", ("record",), type=ABSOLUTE_FOLDER, default=SITES),
    Option(
        "--into",
        "The folder to write. A package itself is not changed.",
        ("report",),
        type=NEW_FOLDER,
        usual="report/ in the campaign's folder",
    ),
    Option("--into", "The folder to write.", ("package",), type=NEW_FOLDER, usual="results/CAMPAIGN-package"),
    Option(
        "--into",
        "The package to resume from and to write.",
        ("reference",),
        type=NEW_FOLDER,
        usual="next to the declaration",
    ),
    Option(
        "--into",
        "The folder for the page, JSON and tables.",
        ("compare",),
        type=NEW_FOLDER,
        usual="compare/A in B's folder",
    ),
    Option(
        "--into",
        "The folder for the page, JSON and tables.",
        ("history",),
        type=NEW_FOLDER,
        usual="history in FOLDER",
    ),
    Option(
        "--into",
        "The folder for the page, JSON and tables.",
        ("combine",),
        type=NEW_FOLDER,
        usual="combined in the first campaign's folder",
    ),
    Option("--into", "A CSV file for the changes of each run.", ("quiet-times",), type=FILE, parameter="file"),
    Option("--into", "The folder for the drawing.", ("networks",), type=FOLDER, default=RESULTS / "networks"),
    Option(
        "--into",
        "The networks.toml to which the profile is added.",
        ("probe-network",),
        type=PATH,
        default=late("eyelevel.defaults:profiles"),
    ),
    Option("--into", "The folder for figures.", ("validate",), type=FOLDER, default=RESULTS / "validation"),
    Option(
        "--into", "The folder for the table and the figure.", ("site-info",), type=FOLDER, default=RESULTS / "sites"
    ),
    Option("--into", "A Markdown file for the table and its details.", ("interop",), type=FILE),
    Option(
        "--allow-changed",
        "Report a package even if its files differ from what was written ('eyelevel verify').",
        ("report",),
        is_flag=True,
    ),
    Option("--figures-only", "Draw only the figures.", ("report",), is_flag=True),
    Option(
        "--licence",
        "URL of the licence of the numbers.",
        ("package",),
        default=LICENCE,
    ),
    Option("--json", "Print JSON.", WITH_TABLES, is_flag=True, parameter="as_json"),
)


def options_of(command: str) -> list[Option]:
    """The options and arguments of `command`, or of all studies (`STUDY`), in the order of the table."""
    return [option for option in OPTIONS if command in option.commands]


def parameters_of(command: str) -> list[click.Parameter]:
    """The options of `command` as click's parameters."""
    return parameters(options_of(command))


def parameters(options: Iterable[Option]) -> list[click.Parameter]:
    """The parameters of click for `options`."""
    return [option.click_parameter() for option in options]


def with_options(settings: CampaignSettings, command: str, given: Mapping[str, Any]) -> CampaignSettings:
    """`settings`, changed by the parameters `given` to `command` (by name; None if not given)."""
    chosen = {}
    for option in options_of(command):
        value = given[option.click_parameter().name or ""] if option.setting else None
        if value is not None:
            chosen[option.setting] = value
    return replace(settings, **chosen)
