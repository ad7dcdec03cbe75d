"""Where a briefing's facts come from: feeds, calendars, notes, service checks and the mesh itself.

Read in this order: `item` (what a fact is), `window` (which facts count as today's), `source` (the contract),
`text` and `fetch` (the two edges: foreign text, foreign servers), the sources, and `reader` (all of them at once).
"""
