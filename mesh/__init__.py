"""Jarvis itself: the briefing and the watchdog, their sources, roles and stores."""
