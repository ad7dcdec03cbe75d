"""Figures as ratios in one run: ours beside the raw server's. ``make bench`` prints them; no test depends on them."""
