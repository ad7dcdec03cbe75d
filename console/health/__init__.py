"""What `jarvis doctor` looks at: `findings` are the rules by which it judges, pure; `examining` only reads."""
