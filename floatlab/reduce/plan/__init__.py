"""Orders of evaluation: plans, schedules, and the language that names them."""
