"""The roles that write a briefing by rule, without a model.

What passes between them is Markdown with `## ` sections, so that a model may take over any of them. Read in this order:
`assignment` (what a role is asked), `document` (the sections), `phrases`, `markdown` and `lines` (how a fact becomes a
line), `research`, `operations`, `composer`, and `rules` (the factory that hands them out).
"""
