"""What an operator sees: texts without control characters, tables, questions and progress."""
