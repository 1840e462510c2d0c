"""The user study: do people notice the differences that a campaign measured, and which page do they like better?

It follows Rüth, Wolsing, Wehrle and Hohlfeld, "Perceiving QUIC: Do Users Notice or Even Care?" (CoNEXT 2019). A **kit**
is made from a campaign's films: pages that any web server can serve, and a key that says what each clip shows. Votes
come back as CSV, and the campaign's report has a section on them (docs/user-study.md).
"""
