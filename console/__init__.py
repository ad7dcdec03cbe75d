"""How people see and steer the mesh: the `jarvis` command line.

Read in this order: `main` (from what was typed to an exit code), `app` (the commands), `output` and `trouble` (what a
person sees), `joining` (how a command comes to a mesh), then `commands/`, one file each.
"""
