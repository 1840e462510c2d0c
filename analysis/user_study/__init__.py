"""The user study: do people notice what a campaign measured, and which page do they like better?

After Rüth, Wolsing, Wehrle and Hohlfeld, "Perceiving QUIC: Do Users Notice or Even Care?" (CoNEXT 2019). A **kit** is
made of a campaign's films: pages that any web server serves, and a key that says what each clip shows. Votes come back
as CSV, and the report of the campaign has a section on them (docs/user-study.md).
"""
