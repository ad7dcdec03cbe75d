"""What `jarvis doctor` looks at and how it judges: `findings` are the rules, pure; `asking` only reads, and changes nothing."""
