# Written by 'PYTHONPATH=tests:. python -m support.every_option'.
TARGETS := try answer init record import export edit close site-info replay campaign status review results report figures reference reproduce package verify waterfall user-study ab compare history combine quiet-times networks protocols convert-trace probe-network validate interop devices doctor lanes cluster-keys completion ladder order dose grid states packets figure2 fairness fidelity video
NEEDS_init := FOLDER
EXAMPLE_init := make init FOLDER=../my-measurements
NEEDS_import := FROM
EXAMPLE_import := make import FROM=../recordings/www.yelp.com
NEEDS_export := SITE AS
EXAMPLE_export := make export SITE=demo-news AS=wacz INTO=demo-news.wacz
NEEDS_edit := SITE AS
EXAMPLE_edit := make edit SITE=shop AS=no-fonts DROP='*.woff2'
NEEDS_replay := NET PROTO SITE
EXAMPLE_replay := make replay SITE=demo-news NET=lte PROTO=tcp
NEEDS_status := CAMPAIGN
EXAMPLE_status := make status CAMPAIGN=first
NEEDS_review := CAMPAIGN
EXAMPLE_review := make review CAMPAIGN=first
NEEDS_results := CAMPAIGN
EXAMPLE_results := make results CAMPAIGN=first
NEEDS_report := CAMPAIGN
EXAMPLE_report := make report CAMPAIGN=first SITE=demo-news
NEEDS_figures := CAMPAIGN
EXAMPLE_figures := make figures CAMPAIGN=first SITE=demo-news
NEEDS_package := CAMPAIGN
EXAMPLE_package := make package CAMPAIGN=first INTO=first-data
NEEDS_verify := FOLDER
EXAMPLE_verify := make verify FOLDER=data/reference
NEEDS_waterfall := CAMPAIGN
EXAMPLE_waterfall := make waterfall CAMPAIGN=try SITE=demo-light NET=geo PROTO=tcp+,quic
NEEDS_user-study := CAMPAIGN
EXAMPLE_user-study := make user-study CAMPAIGN=first STUDY=my-study.toml
NEEDS_ab := A B
EXAMPLE_ab := make ab A=PROTO=quic B=PROTO=quic+bbr NET=lte SITES=demo-news BUDGET=10m
NEEDS_compare := A B
EXAMPLE_compare := make compare A=before B=after WORSE_THAN=3%
NEEDS_history := FOLDER
EXAMPLE_history := make history FOLDER=results
NEEDS_combine := CAMPAIGN
EXAMPLE_combine := make combine CAMPAIGN=laptop,server,laptop-2027
NEEDS_quiet-times := CAMPAIGN
EXAMPLE_quiet-times := make quiet-times CAMPAIGN=first QUIET_MS=1000,2000
NEEDS_convert-trace := FROM INTO
EXAMPLE_convert-trace := make convert-trace FROM=log.csv TIME=timestamp:ms RATE=down_kbps:kbit/s RTT=rtt INTO=down.csv
